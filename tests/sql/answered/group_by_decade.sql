-- compare: rows
SELECT FLOOR(age / 10.0) * 10 AS decade, COUNT(*) AS n FROM patients GROUP BY 1
