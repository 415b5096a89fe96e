-- code: too_large
-- says: words and signs once their functions are expanded
-- works: SELECT CBRT(population) AS n FROM cities
SELECT CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(population)))))))))))))))))))) AS n FROM cities
