-- code: sql_syntax
-- says: The options of EXPLAIN do not end with a parenthesis
-- works: EXPLAIN (COSTS off, ANALYZE) SELECT COUNT(*) FROM patients
EXPLAIN (COSTS off ANALYZE) SELECT COUNT(*) FROM patients
