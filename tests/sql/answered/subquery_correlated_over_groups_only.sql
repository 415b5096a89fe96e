-- compare: rows
WITH t AS (SELECT sex, city, COUNT(*) AS n FROM patients GROUP BY sex, city) SELECT sex, city, n FROM t AS a WHERE n = (SELECT MAX(n) FROM t AS b WHERE b.city = a.city)
