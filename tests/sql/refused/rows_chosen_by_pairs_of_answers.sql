-- code: unsupported_sql
-- says: several columns of answers
-- works: SELECT sex, city, COUNT(*) AS n FROM patients GROUP BY sex, city HAVING (sex, city) IN (SELECT sex, city FROM patients GROUP BY sex, city HAVING COUNT(*) > 100)
SELECT COUNT(*) AS n FROM patients WHERE (sex, city) IN (SELECT sex, city FROM patients GROUP BY sex, city HAVING COUNT(*) > 100)
