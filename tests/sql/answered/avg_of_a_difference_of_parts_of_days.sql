-- compare: rows
SELECT AVG(EXTRACT(YEAR FROM admitted) - visits) AS a, SUM(EXTRACT(MONTH FROM admitted) - stay) AS s, COUNT(EXTRACT(DAY FROM admitted) - visits) AS n FROM patients
