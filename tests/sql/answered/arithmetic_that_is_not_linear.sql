-- compare: rows
SELECT ROUND(ABS(COUNT(*) FILTER (WHERE insured) - 1000), 0) AS gap, COUNT(*) * COUNT(*) AS squared FROM patients
