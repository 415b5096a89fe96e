-- compare: rows
SELECT t.band, c.country, COUNT(*) AS n FROM patients AS p, tariffs AS t, cities AS c WHERE p.city = c.city AND t.city = c.city AND t.sex = p.sex AND c.is_capital GROUP BY t.band, c.country
