-- compare: rows
-- half_width: 500
SELECT "when", SUM(n * age) AS years, SUM(CASE WHEN age > 40 THEN n ELSE 0 END) AS older, SUM(known) FILTER (WHERE age < 60) AS known, SUM(spent) / SUM(n) AS each FROM (SELECT DATE_TRUNC('month', admitted) AS "when", age, COUNT(*) FILTER (WHERE insured) AS n, COUNT(stay) AS known, 2 * SUM(cost) - COUNT(*) AS spent FROM patients WHERE sex IS NOT NULL GROUP BY 1, 2) AS t WHERE age >= 30 GROUP BY "when"
