-- compare: rows
SELECT sex, city, COUNT(*) AS n FROM patients JOIN (SELECT sex AS sex__, city AS city__ FROM patients GROUP BY sex, city HAVING COUNT(*) > 60) AS s ON sex = sex__ AND city = city__ WHERE insured GROUP BY sex, city
