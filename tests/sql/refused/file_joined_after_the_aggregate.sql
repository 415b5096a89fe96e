-- code: unsupported_sql
-- says: READ_TEXT
-- works: SELECT city, COUNT(*) FROM patients GROUP BY city
SELECT t.n FROM (SELECT COUNT(*) AS n FROM patients) AS t, read_text('secrets.txt') AS f
