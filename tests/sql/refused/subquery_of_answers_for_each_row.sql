-- code: unsupported_sql
-- says: a value of one record is needed
-- works: SELECT COUNT(*) FROM patients WHERE age > (SELECT AVG(age) FROM patients)
SELECT COUNT(*) FROM patients AS x WHERE x.age > (SELECT AVG(y.age) FROM patients AS y WHERE y.city = x.city)
