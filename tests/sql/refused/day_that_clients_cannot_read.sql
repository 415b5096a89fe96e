-- code: unsupported_sql
-- says: years 1 to 9999
-- works: SELECT DATE '2024-01-01' + 1000 AS d
SELECT DATE '2024-01-01' + 10000000 AS d
