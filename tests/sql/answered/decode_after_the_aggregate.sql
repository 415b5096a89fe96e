-- compare: rows
-- duckdb:
--   SELECT city, CASE city WHEN 'Oslo' THEN 'north' WHEN 'Bergen' THEN 'north' ELSE 'south' END AS part, COUNT(*) AS n
--   FROM patients GROUP BY city
SELECT city, DECODE(city, 'Oslo', 'north', 'Bergen', 'north', 'south') AS part, COUNT(*) AS n FROM patients GROUP BY city
