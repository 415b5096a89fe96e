-- code: too_large
-- says: groups
-- works: SELECT age, visits, COUNT(*) FROM patients GROUP BY GROUPING SETS ((age), (visits))
SELECT age, visits, sex, city, bmi, "Blood Type", COUNT(*) FROM patients GROUP BY GROUPING SETS ((age, visits, sex, city, "Blood Type"), (age, visits, bmi, "Blood Type", sex))
