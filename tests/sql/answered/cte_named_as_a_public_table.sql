-- compare: rows
WITH cities AS (SELECT 1 AS x) SELECT COUNT(*) AS n FROM public.cities
