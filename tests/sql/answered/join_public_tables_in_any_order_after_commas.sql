-- compare: rows
SELECT c.country, t.band, COUNT(*) AS n FROM tariffs AS t, patients AS p, cities AS c WHERE t.city = c.city AND c.city = p.city AND p.sex = t.sex GROUP BY c.country, t.band
