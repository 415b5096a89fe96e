-- compare: ordered
SELECT sex AS sex, COUNT(*) AS count FROM patients WHERE sex IN ('female', 'male') GROUP BY sex ORDER BY count DESC
