-- compare: rows
-- spends: nothing
SELECT country, COUNT(*) AS n, MAX(population) AS largest FROM cities GROUP BY country
