-- code: unsupported_sql
-- says: SEMI
-- works: SELECT COUNT(*) FROM patients AS p JOIN cities AS c ON p.city = c.city
SELECT COUNT(*) FROM patients AS p SEMI JOIN cities AS c ON p.city = c.city
