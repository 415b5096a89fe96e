-- code: sql_syntax
-- says: statement
-- works: SELECT COUNT(*) FROM patients
/* only a comment */
