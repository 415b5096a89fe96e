-- code: unsupported_sql
-- says: EXPLAIN PRIVACY
-- works: EXPLAIN PRIVACY SELECT COUNT(*) FROM patients
EXPLAIN SELECT COUNT(*) FROM patients
