-- code: unsupported_sql
-- says: keep public rows that no private row has
-- works: SELECT COUNT(*) FROM patients AS p LEFT JOIN cities AS c ON c.city = p.city
SELECT COUNT(*) FROM cities AS c LEFT JOIN patients AS p ON c.city = p.city
