-- compare: rows
WITH top AS (SELECT city FROM patients GROUP BY city ORDER BY COUNT(*) DESC LIMIT 2) SELECT sex, city, AVG(age) AS a FROM patients WHERE visits > 1 AND city NOT IN (SELECT city FROM top) AND sex IN (SELECT sex FROM patients GROUP BY sex ORDER BY COUNT(*) DESC LIMIT 1) GROUP BY sex, city HAVING COUNT(*) > 1
