-- code: unsupported_sql
-- says: view
-- works: SELECT COUNT(*) FROM patients
SELECT COUNT(*) FROM patients AS a, patients AS b WHERE a.age = b.age
