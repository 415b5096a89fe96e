-- code: unsupported_sql
-- says: INTERVAL
-- works: SELECT age, COUNT(*) FROM patients GROUP BY age
SELECT INTERVAL '1 day' * age AS k, COUNT(*) FROM patients GROUP BY k
