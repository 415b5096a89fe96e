-- compare: rows
SELECT AVG(n) AS mean_size FROM (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 60, confidence => 0.9) city, COUNT(*) AS n FROM patients GROUP BY city) AS t
