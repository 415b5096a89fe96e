-- code: sql_syntax
-- says: are for SELECT
-- works: SELECT COUNT(*) FROM patients /*+ tacit(epsilon=1) */
CREATE SYNTHETIC TABLE s FROM patients /*+ tacit(epsilon=1) */
