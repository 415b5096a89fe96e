-- compare: rows
-- duckdb:
--   SELECT age AS years, COUNT(*) FILTER (WHERE city = 'Oslo') AS n FROM patients GROUP BY age
SELECT years, COUNT(*) AS n FROM (SELECT age AS years, city AS age FROM patients) AS t WHERE age = 'Oslo' GROUP BY years
