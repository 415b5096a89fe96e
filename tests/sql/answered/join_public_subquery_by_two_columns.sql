-- compare: rows
SELECT band, COUNT(*) AS n FROM patients AS p JOIN (SELECT city, sex, band FROM tariffs WHERE fee > 5) AS t ON p.city = t.city AND p.sex = t.sex GROUP BY band
