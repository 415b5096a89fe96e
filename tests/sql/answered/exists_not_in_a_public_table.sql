-- compare: rows
SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE EXISTS (SELECT 1 FROM cities WHERE is_capital)) AS every FROM patients AS p WHERE NOT EXISTS (SELECT * FROM cities WHERE cities.city = p.city AND is_capital) AND NOT EXISTS (SELECT 1 FROM holidays WHERE day > DATE '2030-01-01')
