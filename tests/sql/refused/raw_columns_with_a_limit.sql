-- code: unsupported_sql
-- says: GROUP BY sex, city
-- works: SELECT sex, city, COUNT(*) FROM patients GROUP BY sex, city
SELECT sex, city FROM patients LIMIT 2000
