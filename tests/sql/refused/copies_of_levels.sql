-- code: too_large
-- says: 
-- works: SELECT COUNT(*) FROM patients WHERE CBRT(age) > 3
SELECT COUNT(*) FROM patients WHERE CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(CBRT(age)))))))))))))))))))) > 3
