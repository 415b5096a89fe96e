-- code: unsupported_sql
-- says: is joined by city alone instead of its whole key, (city, sex)
-- works: SELECT COUNT(*) FROM patients AS p JOIN (SELECT city, COUNT(*) AS n FROM tariffs GROUP BY city) AS t ON p.city = t.city
SELECT COUNT(*) FROM patients AS p JOIN tariffs AS t ON p.city = t.city
