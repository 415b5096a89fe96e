-- code: too_large
-- says: once its functions are written out
-- works: SELECT CBRT(COUNT(*)) AS n FROM patients
SELECT CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(COUNT(*))))))))))))))))))))) AS n FROM patients
