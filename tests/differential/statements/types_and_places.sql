-- e01: types and places
SELECT COUNT(*) FROM t WHERE "order" IN ();
-- e02: types and places
SELECT DISTINCT ON (region) region, city FROM regions ORDER BY city;
-- e03: types and places
SELECT DISTINCT ON (region) region, city FROM regions ORDER BY region, city;
-- e04: types and places
SELECT DISTINCT ON (1) region AS r, city FROM regions ORDER BY r, city;
-- e05: types and places
SELECT DISTINCT ON (region, city) region, city FROM regions ORDER BY city, region;
-- e06: types and places
SELECT DISTINCT ON (region, city) region, city FROM regions ORDER BY city;
-- e07: types and places
SELECT DISTINCT ON (region, city) region, city FROM regions ORDER BY city, pop;
-- e08: types and places
SELECT DISTINCT region FROM regions ORDER BY city;
-- e09: types and places
SELECT DISTINCT region || 'x' FROM regions ORDER BY region || 'x';
-- e10: types and places
SELECT DISTINCT region AS r FROM regions ORDER BY region;
-- e11: types and places
SELECT DISTINCT regions.region FROM regions ORDER BY regions.region;
-- e12: types and places
SELECT DISTINCT regions.region FROM regions ORDER BY region;
-- e13: types and places
SELECT DISTINCT region FROM regions ORDER BY regions.region;
-- e14: types and places
SELECT city AS x, pop AS x FROM regions ORDER BY x;
-- e15: types and places
SELECT 1 WHERE 1 = '1';
-- e16: types and places
SELECT 1 WHERE 1.5 = '1.5';
-- e17: types and places
SELECT SUM(pop) > '5' AS r FROM regions;
-- e18: types and places
SELECT city FROM regions WHERE pop IN ('10', '50000') ORDER BY 1;
-- e19: types and places
SELECT COALESCE(pop, '7') AS k FROM regions ORDER BY 1;
-- e20: types and places
SELECT pop FROM regions UNION SELECT 1.5 ORDER BY 1;
-- e21: types and places
SELECT NULL AS a UNION SELECT 1 UNION SELECT NULL ORDER BY 1;
-- e22: types and places
SELECT 'a' AS a UNION SELECT NULL UNION SELECT 'b' ORDER BY 1;
-- e23: types and places
SELECT DATE '2024-01-01' AS a UNION SELECT TIMESTAMP '2024-01-01 10:00' ORDER BY 1;
-- e24: types and places
SELECT DATE '2024-01-01' AS a UNION SELECT '2024-01-02' ORDER BY 1;
-- e25: types and places
SELECT * FROM regions UNION SELECT 'a', 'b', 5 ORDER BY 1;
-- e26: types and places
SELECT COUNT(*) FROM t WHERE d = '2024-01-05' OR ts > DATE '2024-04-02';
-- e27: types and places
SELECT COUNT(*) FROM t WHERE d + 1 > '2024-05-01';
-- e28: types and places
SELECT COUNT(*) FROM t WHERE age::text = '7';
-- e29: types and places
SELECT COUNT(*) FROM t WHERE LENGTH(city) = '4';
-- e30: types and places
SELECT COUNT(*) FROM t WHERE b = 'true' AND b <> FALSE;
-- e31: types and places
SELECT COUNT(*) FROM t WHERE CASE WHEN b THEN age ELSE NULL END > 5;
-- e32: types and places
SELECT COUNT(*) FROM t WHERE city = ANY(ARRAY['Oslo', 'oslo']);
-- e33: types and places
SELECT COUNT(*) FROM t WHERE EXTRACT(YEAR FROM d) = '2024';
-- e34: types and places
SELECT COUNT(*) FROM t WHERE TO_CHAR(d, 'YYYY') = '2024' AND TO_CHAR(d, 'MM') IN ('01', '02');
-- e35: types and places
SELECT COUNT(*) FROM t WHERE CAST(d AS text) LIKE '2024-01%';
-- e36: types and places
SELECT COUNT(*) FROM t WHERE "order" || '' = '1';
-- e37: types and places
SELECT city AS age, COUNT(*) AS n FROM t GROUP BY city ORDER BY n DESC, age LIMIT 2;
-- e38: types and places
SELECT k, SUM(n) AS n FROM (SELECT city AS k, COUNT(*) AS n FROM t GROUP BY city) q WHERE k = 'Oslo' GROUP BY k;
-- e39: types and places
WITH t2 AS (SELECT "group" AS city, COUNT(*) AS n FROM t GROUP BY 1) SELECT city FROM t2 WHERE city = 'a';
-- e40: types and places
WITH t AS (SELECT "order" AS city FROM t) SELECT COUNT(*) FROM t WHERE city = 1;
-- e41: wide and fine decimals in a union
SELECT pop::numeric(38,0) AS x FROM regions UNION ALL SELECT 0.75 ORDER BY x;
-- e42: wide and fine decimals in VALUES
SELECT x FROM (VALUES (1::numeric(38,0)), (0.75)) AS t(x) ORDER BY 1;
