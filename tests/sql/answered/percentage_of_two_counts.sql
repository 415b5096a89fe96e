-- compare: rows
SELECT 100.0 * COUNT(*) FILTER (WHERE sex = 'female') / COUNT(*) AS percent FROM patients
