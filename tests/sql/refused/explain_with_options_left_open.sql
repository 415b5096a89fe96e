-- code: sql_syntax
-- says: have no end
-- works: EXPLAIN (COSTS off, ANALYZE) SELECT COUNT(*) FROM patients
EXPLAIN (COSTS off ANALYZE) SELECT COUNT(*) FROM patients
