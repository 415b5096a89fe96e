-- code: too_large
-- says: once its functions are written out
-- works: SELECT CBRT(population) AS n FROM cities
SELECT CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(population)))))))))))))))))))) AS n FROM cities
