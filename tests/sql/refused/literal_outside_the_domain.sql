-- code: outside_domain
-- says: Stockholm
-- works: SELECT COUNT(*) FROM patients WHERE city = 'elsewhere'
SELECT COUNT(*) FROM patients WHERE city = 'Stockholm'
