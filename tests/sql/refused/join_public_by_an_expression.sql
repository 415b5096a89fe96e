-- code: unsupported_sql
-- says: expression
-- works: SELECT COUNT(*) FROM (SELECT * FROM patients) AS t JOIN cities AS c ON t.city = c.city
SELECT COUNT(*) FROM (SELECT UPPER(city) AS upper_city FROM patients) AS t JOIN cities AS c ON t.upper_city = c.city
