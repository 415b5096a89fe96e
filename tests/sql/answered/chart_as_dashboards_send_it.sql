-- compare: ordered
-- half_width: 50
SELECT city AS city, AVG(age) AS avg_age, COUNT(*) AS count FROM public.patients WHERE city IN ('Oslo', 'Rome', 'Paris') GROUP BY city ORDER BY count DESC LIMIT 10
