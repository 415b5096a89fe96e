-- compare: rows
SELECT STRFTIME(admitted, '%Y-%m, week %V, %A %-d %b') AS m, COUNT(*) AS n FROM patients WHERE admitted < DATE '2024-01-15' GROUP BY 1
