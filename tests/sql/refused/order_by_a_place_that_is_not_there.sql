-- code: sql_syntax
-- says: is not the position of one of the 1 columns
-- works: SELECT COUNT(*) FROM patients ORDER BY 1
SELECT COUNT(*) FROM patients ORDER BY 2
