-- code: unsupported_sql
-- says: a moment, not a day
-- works: SELECT admitted + 1, COUNT(*) FROM patients GROUP BY 1
SELECT admitted + INTERVAL '1 hour', COUNT(*) FROM patients GROUP BY 1
