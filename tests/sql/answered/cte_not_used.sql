-- compare: rows
WITH unused AS (SELECT 1 AS one) SELECT COUNT(*) AS n FROM patients
