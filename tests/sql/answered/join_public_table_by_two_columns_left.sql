-- compare: rows
SELECT t.band, COUNT(*) AS n FROM patients AS p LEFT JOIN tariffs AS t ON p.city = t.city AND p.sex = t.sex GROUP BY t.band
