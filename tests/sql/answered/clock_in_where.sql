-- compare: rows
SELECT COUNT(*) AS n FROM patients WHERE admitted <= CURRENT_DATE - INTERVAL '24 months' AND admitted < CAST(DATE_TRUNC('month', NOW()) AS DATE)
