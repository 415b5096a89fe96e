-- compare: rows
SELECT COUNT(*) AS n FROM (SELECT * FROM patients LIMIT 0) AS t
