-- code: unsupported_sql
-- says: p.*
-- works: SELECT COUNT(*) FROM patients AS p
SELECT COUNT(p.*) FROM patients AS p
