-- code: unsupported_sql
-- says: is no number but a text
-- works: SELECT ABS(n - 300) FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t
SELECT ABS(city) FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t
