-- code: sql_syntax
-- says: no option QUICKLY
-- works: EXPLAIN (ANALYZE) SELECT COUNT(*) FROM patients
EXPLAIN (QUICKLY) SELECT COUNT(*) FROM patients
