-- code: unsupported_sql
-- says: neither aggregated nor a group key
-- works: SELECT city, sex, COUNT(*) FROM patients GROUP BY city, sex
SELECT city, sex, COUNT(*) FROM patients GROUP BY city
