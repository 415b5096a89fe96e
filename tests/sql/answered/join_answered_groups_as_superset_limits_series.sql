-- compare: ordered
SELECT DATE_TRUNC('year', admitted) AS __timestamp, city AS city, COUNT(*) AS count FROM public.patients JOIN (SELECT city AS city__, COUNT(*) AS mme_inner__ FROM public.patients GROUP BY city ORDER BY mme_inner__ DESC LIMIT 2) AS series_limit ON city = city__ GROUP BY DATE_TRUNC('year', admitted), city ORDER BY count DESC LIMIT 10000
