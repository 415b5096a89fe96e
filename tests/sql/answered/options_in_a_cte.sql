-- compare: rows
WITH t AS (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 60) city, COUNT(*) AS n FROM patients GROUP BY city) SELECT city, n FROM t WHERE n > 100
