-- compare: rows
WITH t(place, people) AS (SELECT city, COUNT(*) FROM patients GROUP BY city) SELECT place, people FROM t
