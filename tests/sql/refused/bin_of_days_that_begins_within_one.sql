-- code: unsupported_sql
-- says: a moment, not a day
-- works: SELECT DATE_BIN('7 days', admitted, TIMESTAMP '2020-01-01') AS k, COUNT(*) FROM patients GROUP BY 1
SELECT DATE_BIN('7 hours', admitted, TIMESTAMP '2020-01-01 01:00') AS k, COUNT(*) FROM patients GROUP BY 1
