-- code: sql_syntax
-- says: has a syntax error
-- works: SELECT COUNT(*) FROM patients /*+ tacit(half_width=50) */
SELECT COUNT(*) FROM patients /*+ tacit(half_width 50) */
