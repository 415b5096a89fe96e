-- code: unsupported_sql
-- says: has a time of day, and a date is needed
-- works: SELECT DATE_BIN('7 days', admitted, TIMESTAMP '2020-01-01') AS k, COUNT(*) FROM patients GROUP BY 1
SELECT DATE_BIN('7 hours', admitted, TIMESTAMP '2020-01-01 01:00') AS k, COUNT(*) FROM patients GROUP BY 1
