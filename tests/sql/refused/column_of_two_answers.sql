-- code: unknown_name
-- says: Ambiguous
-- works: SELECT a.n FROM (SELECT COUNT(*) AS n FROM patients) AS a, (SELECT SUM(age) AS n FROM patients) AS b
SELECT n FROM (SELECT COUNT(*) AS n FROM patients) AS a, (SELECT SUM(age) AS n FROM patients) AS b
