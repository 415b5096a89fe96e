-- compare: none it explains and answers nothing
-- spends: nothing
EXPLAIN PRIVACY WITH t AS (SELECT city, AVG(age) AS a FROM patients GROUP BY city) SELECT MAX(a) FROM t
