-- code: unsupported_sql
-- says: OTHER
-- works: SELECT city, COUNT(*) FROM patients GROUP BY city
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(extremes => 'noisy') MAX(city) FROM patients
