-- code: unsupported_sql
-- says: more than a key
-- works: SELECT COUNT(*) FROM patients JOIN cities USING (city)
SELECT COUNT(*) FROM patients JOIN cities USING (city, population)
