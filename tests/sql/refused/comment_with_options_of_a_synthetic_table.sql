-- code: sql_syntax
-- says: Options in a comment work only for SELECT
-- works: SELECT COUNT(*) FROM patients /*+ tacit(epsilon=1) */
CREATE SYNTHETIC TABLE s FROM patients /*+ tacit(epsilon=1) */
