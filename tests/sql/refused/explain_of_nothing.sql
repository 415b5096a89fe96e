-- code: sql_syntax
-- says: EXPLAIN PRIVACY needs a statement
-- works: EXPLAIN PRIVACY SELECT COUNT(*) FROM patients
EXPLAIN PRIVACY
