-- compare: rows
-- half_width: 0.2
SELECT COUNT(*) FILTER (WHERE insured) / COUNT(*) AS share FROM patients
