-- code: unsupported_sql
-- says: needs buckets that are numbers
-- works: SELECT WIDTH_BUCKET(age, 0, 100, 10) AS b, COUNT(*) FROM patients GROUP BY 1
SELECT WIDTH_BUCKET(age, 100, 0, 10) AS b, COUNT(*) FROM patients GROUP BY 1
