-- compare: rows
SELECT COUNT(*) FILTER (WHERE sex IS NULL) AS a, COUNT(*) FILTER (WHERE sex = NULL) AS b, COUNT(*) FILTER (WHERE sex IS DISTINCT FROM 'male') AS c FROM patients
