-- code: unsupported_sql
-- says: key, city
-- works: SELECT COUNT(*) FROM patients JOIN cities USING (city)
SELECT COUNT(*) FROM patients JOIN cities USING (country)
