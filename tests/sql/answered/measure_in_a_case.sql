-- compare: rows
SELECT CASE WHEN cost > 300 THEN 'dear' WHEN cost BETWEEN 0 AND 99.5 THEN 'cheap' ELSE 'middling' END AS price, COUNT(*) AS n, AVG(cost) AS mean FROM patients GROUP BY 1
