-- compare: rows
SELECT COUNT(*) AS n FROM patients WHERE city IN (VALUES ('Oslo'), ('Rome')) AND age IN (SELECT x FROM (VALUES (30), (31), (32)) AS v(x) WHERE x <> 31)
