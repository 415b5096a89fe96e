-- code: unsupported_sql
-- says: more than a key
-- works: SELECT COUNT(*) FROM patients JOIN tariffs USING (city, sex)
SELECT COUNT(*) FROM patients JOIN tariffs USING (city, sex, age)
