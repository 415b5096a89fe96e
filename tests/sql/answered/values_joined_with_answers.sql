-- compare: rows
WITH v(k, w) AS (VALUES ('Oslo', 2), ('Rome', 3)) SELECT k, n * w AS x FROM v JOIN (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS c ON c.city = k
