-- code: unsupported_sql
-- says: ROW_NUMBER()
-- works: SELECT city, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*)) FROM patients GROUP BY city
SELECT ROW_NUMBER() FILTER (WHERE insured), COUNT(*) FROM patients
