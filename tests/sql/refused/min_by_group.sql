-- code: unsupported_sql
-- says: MIN(age)
-- works: SELECT city, COUNT(*) FILTER (WHERE age < 20) FROM patients GROUP BY city
SELECT city, MIN(age) FROM patients GROUP BY city
