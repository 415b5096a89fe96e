-- code: unsupported_sql
-- says: EXPLAIN has no format XML
-- works: EXPLAIN (FORMAT JSON) SELECT COUNT(*) FROM patients
EXPLAIN (FORMAT XML) SELECT COUNT(*) FROM patients
