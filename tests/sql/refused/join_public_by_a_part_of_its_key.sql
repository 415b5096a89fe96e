-- code: unsupported_sql
-- says: is joined by city alone, and not by all of its key, (city, sex)
-- works: SELECT COUNT(*) FROM patients AS p JOIN (SELECT city, COUNT(*) AS n FROM tariffs GROUP BY city) AS t ON p.city = t.city
SELECT COUNT(*) FROM patients AS p JOIN tariffs AS t ON p.city = t.city
