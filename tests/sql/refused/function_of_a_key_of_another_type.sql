-- code: unsupported_sql
-- says: city is a text, and a number is needed
-- works: SELECT ABS(n - 300) FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t
SELECT ABS(city) FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t
