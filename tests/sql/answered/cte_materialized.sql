-- compare: rows
WITH t AS MATERIALIZED (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) SELECT SUM(n) AS n FROM t
