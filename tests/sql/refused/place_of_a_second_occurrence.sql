-- code: unsupported_sql
-- says: STRPOS(city, 'o', 1, 2)
-- works: SELECT COUNT(*) FROM patients WHERE STRPOS(city, 'o') > 1
SELECT COUNT(*) FROM patients WHERE STRPOS(city, 'o', 1, 2) > 1
