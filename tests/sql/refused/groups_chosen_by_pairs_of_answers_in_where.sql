-- code: unsupported_sql
-- says: by a join with the subquery
-- works: SELECT sex, city, COUNT(*) AS n FROM patients JOIN (SELECT sex AS a, city AS b, COUNT(*) AS k FROM patients GROUP BY sex, city HAVING COUNT(*) > 100) AS x ON sex = x.a AND city = x.b GROUP BY sex, city
SELECT sex, city, COUNT(*) AS n FROM patients WHERE (sex, city) IN (SELECT sex, city FROM patients GROUP BY sex, city HAVING COUNT(*) > 100) GROUP BY sex, city
