-- code: unsupported_sql
-- says: is joined so that public rows without a private row are kept
-- works: SELECT COUNT(*) FROM patients AS p LEFT JOIN cities AS c ON c.city = p.city
SELECT COUNT(*) FROM cities AS c LEFT JOIN patients AS p ON c.city = p.city
