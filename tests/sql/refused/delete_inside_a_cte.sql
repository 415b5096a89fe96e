-- code: unsupported_sql
-- says: DELETE
-- works: SELECT COUNT(*) FROM patients
WITH gone AS (DELETE FROM patients RETURNING *) SELECT COUNT(*) FROM gone
