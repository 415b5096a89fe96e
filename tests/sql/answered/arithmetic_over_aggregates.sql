-- compare: rows
SELECT 2 * COUNT(*) FILTER (WHERE insured) - COUNT(*) + 10 AS odd FROM patients
