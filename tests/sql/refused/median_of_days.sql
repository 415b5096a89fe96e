-- code: unsupported_sql
-- says: between two days
-- works: SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY admitted) AS day FROM patients
SELECT MEDIAN(admitted) AS day FROM patients
