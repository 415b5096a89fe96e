-- code: unsupported_sql
-- says: is joined by columns that are not in its key
-- works: SELECT COUNT(*) FROM patients JOIN cities USING (city)
SELECT COUNT(*) FROM patients JOIN cities USING (city, population)
