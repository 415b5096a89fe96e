-- code: too_large
-- says: 7419720 groups
-- works: SELECT age, admitted, COUNT(*) FROM patients GROUP BY age, admitted
SELECT age, admitted, visits, sex, city, "Blood Type", COUNT(*) FROM patients GROUP BY age, admitted, visits, sex, city, "Blood Type"
