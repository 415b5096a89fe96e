-- code: unknown_name
-- says: There is no table information_schema.tabels
-- works: SELECT table_name FROM information_schema.tables
SELECT table_name FROM information_schema.tabels
