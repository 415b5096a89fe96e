-- code: unknown_name
-- says: town
-- works: SELECT COUNT(*) FROM patients AS p JOIN cities AS c ON p.city = c.city
SELECT COUNT(*) FROM patients AS p JOIN cities AS c ON p.city = c.town
