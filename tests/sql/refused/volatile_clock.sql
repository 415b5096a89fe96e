-- code: unsupported_sql
-- says: CURRENT_DATE
-- works: SELECT COUNT(*) FROM patients WHERE admitted > DATE '2024-01-01'
SELECT COUNT(*) FROM patients WHERE admitted > CURRENT_DATE - INTERVAL '30 days'
