-- compare: rows
SELECT sex, COUNT(*) FILTER (WHERE age > (SELECT AVG(age) FROM patients)) AS n, SUM(CASE WHEN cost < (SELECT AVG(cost) FROM patients) THEN 1 ELSE 0 END) AS m FROM patients GROUP BY sex
