-- compare: rows
SELECT t.band, COUNT(*) AS n FROM patients AS p JOIN tariffs AS t ON t.sex = p.sex AND p.city = t.city GROUP BY t.band
