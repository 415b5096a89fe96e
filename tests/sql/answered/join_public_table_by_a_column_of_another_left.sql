-- compare: rows
SELECT k.largest, SUM(p.visits) AS s
FROM patients AS p
LEFT JOIN cities AS c USING (city)
LEFT JOIN (
  SELECT country, MAX(population) AS largest FROM cities WHERE is_capital GROUP BY country
) AS k USING (country)
WHERE p.age < 60
GROUP BY k.largest
