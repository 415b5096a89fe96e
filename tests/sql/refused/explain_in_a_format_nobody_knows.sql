-- code: unsupported_sql
-- says: FORMAT is TEXT or JSON
-- works: EXPLAIN (FORMAT JSON) SELECT COUNT(*) FROM patients
EXPLAIN (FORMAT XML) SELECT COUNT(*) FROM patients
