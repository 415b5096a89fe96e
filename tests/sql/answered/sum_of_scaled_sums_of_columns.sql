-- compare: rows
SELECT SUM((age + visits) / 2.0) AS a, SUM(cost * 1.1 + 3) AS b, SUM(-stay) AS c, SUM(-(age - stay) * 0.5 - visits) AS e, AVG((CAST(age + visits AS DOUBLE)) / 4) AS f, SUM((stay + visits) / 2) AS g, AVG(1 - (visits - stay) * 3) AS h FROM patients
