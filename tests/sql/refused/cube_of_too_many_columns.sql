-- code: too_large
-- says: grouping sets
-- works: SELECT sex, insured, COUNT(*) FROM patients GROUP BY CUBE (sex, insured)
SELECT COUNT(*) FROM patients GROUP BY CUBE (sex, city, "Blood Type", age, visits, bmi, insured)
