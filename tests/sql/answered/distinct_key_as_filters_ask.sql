-- compare: ordered
-- spends: nothing
SELECT DISTINCT city AS city FROM public.patients WHERE city IS NOT NULL ORDER BY city LIMIT 1000
