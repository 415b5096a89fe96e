-- code: too_large
-- says: 123662
-- works: SELECT age, visits, COUNT(*) FROM patients GROUP BY age, visits
SELECT age, admitted, visits, COUNT(*) FROM patients GROUP BY age, admitted, visits
