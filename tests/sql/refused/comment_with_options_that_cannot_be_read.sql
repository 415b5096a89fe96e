-- code: sql_syntax
-- says: does not parse
-- works: SELECT COUNT(*) FROM patients /*+ tacit(half_width=50) */
SELECT COUNT(*) FROM patients /*+ tacit(half_width 50) */
