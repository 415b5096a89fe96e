-- code: too_large
-- says: groups
-- works: SELECT age, visits, COUNT(*) FROM patients GROUP BY CUBE (age, visits)
SELECT age, admitted, visits, COUNT(*) FROM patients GROUP BY CUBE (age, admitted, visits)
