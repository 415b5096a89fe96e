-- code: too_large
-- says: words and signs once their functions are expanded
-- works: SELECT CBRT(COUNT(*)) AS n FROM patients
SELECT CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(COUNT(*))))))))))))))))))))) AS n FROM patients
