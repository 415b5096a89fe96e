-- code: unsupported_sql
-- says: is a subquery in a place that needs a value of one record
-- works: SELECT COUNT(*) FROM patients WHERE age > (SELECT AVG(age) FROM patients)
SELECT COUNT(*) FROM patients AS x WHERE x.age > (SELECT AVG(y.age) FROM patients AS y WHERE y.city = x.city)
