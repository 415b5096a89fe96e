-- compare: rows
-- half_width: 0.25
-- ignore: n
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(extremes => 'noisy') sex, MIN(age) AS youngest, MAX(age) AS oldest, MIN(admitted) AS first, MAX("Blood Type") AS last, MAX(age) - MIN(age) AS span, COUNT(*) AS n FROM patients GROUP BY sex
