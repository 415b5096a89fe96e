-- code: unsupported_sql
-- says: private rows
-- works: WITH t AS (SELECT city, age FROM patients) SELECT city, AVG(age) FROM t GROUP BY city
WITH t AS (SELECT city, age FROM patients) SELECT * FROM t
