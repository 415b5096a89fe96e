-- code: too_large
-- says: GENERATE_SERIES
-- works: SELECT admitted, COUNT(*) FROM patients GROUP BY admitted
SELECT SUM(i) FROM GENERATE_SERIES(1, 1000000) AS t(i)
