-- code: too_large
-- says: 
-- works: SELECT COUNT(*) FROM patients WHERE REPLACE(city, 'a', 'b') = 'x'
SELECT COUNT(*) FROM patients WHERE REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(city, 'a', 'b'), 'a', 'b'), 'a', 'b'), 'a', 'b'), 'a', 'b'), 'a', 'b'), 'a', 'b'), 'a', 'b'), 'a', 'b'), 'a', 'b'), 'a', 'b'), 'a', 'b'), 'a', 'b'), 'a', 'b'), 'a', 'b'), 'a', 'b'), 'a', 'b'), 'a', 'b'), 'a', 'b'), 'a', 'b') = 'x'
