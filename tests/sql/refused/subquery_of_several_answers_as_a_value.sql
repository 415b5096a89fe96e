-- code: unsupported_sql
-- says: where one value is needed
-- works: SELECT COUNT(*) FROM patients WHERE age > (SELECT MAX(x.a) FROM (SELECT AVG(age) AS a FROM patients GROUP BY sex) AS x)
SELECT COUNT(*) FROM patients WHERE age > (SELECT AVG(age) FROM patients GROUP BY sex)
