-- code: sql_syntax
-- says: SQL
-- works: SELECT COUNT(*) FROM patients
SELECT COUNT(* FROM patients
