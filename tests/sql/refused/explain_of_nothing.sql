-- code: sql_syntax
-- says: nothing
-- works: EXPLAIN PRIVACY SELECT COUNT(*) FROM patients
EXPLAIN PRIVACY
