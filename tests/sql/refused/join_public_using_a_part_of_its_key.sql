-- code: unsupported_sql
-- says: (SELECT sex, COUNT(*) AS n FROM tariffs GROUP BY sex)
-- works: SELECT COUNT(*) FROM patients JOIN (SELECT sex, COUNT(*) AS n FROM tariffs GROUP BY sex) AS t USING (sex)
SELECT COUNT(*) FROM patients JOIN tariffs USING (sex)
