-- compare: rows
-- half_width: 0.5
SELECT city, 1.0 * COUNT(*) FILTER (WHERE age > 60) / NULLIF(COUNT(*), 0) AS share FROM patients GROUP BY city
