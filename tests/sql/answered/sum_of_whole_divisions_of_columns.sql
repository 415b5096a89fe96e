-- compare: rows
-- duckdb:
--   SELECT SUM(age // 2 - visits // 3) AS a, AVG(7 - age // 4 * 2) AS b, SUM((age + visits) // 2) AS c, SUM((age - 100) // 7) AS d FROM patients
SELECT SUM(age / 2 - visits / 3) AS a, AVG(7 - age / 4 * 2) AS b, SUM((age + visits) / 2) AS c, SUM((age - 100) / 7) AS d FROM patients
