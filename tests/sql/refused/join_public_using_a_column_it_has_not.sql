-- code: unsupported_sql
-- says: is joined by columns that are not in its key
-- works: SELECT COUNT(*) FROM patients JOIN tariffs USING (city, sex)
SELECT COUNT(*) FROM patients JOIN tariffs USING (city, sex, age)
