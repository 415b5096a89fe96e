-- code: too_large
-- says: grouping sets
-- works: SELECT sex, insured, COUNT(*) FROM patients GROUP BY ROLLUP (sex), ROLLUP (insured)
SELECT COUNT(*) FROM patients GROUP BY CUBE (sex, city, "Blood Type", insured), CUBE (visits, bmi, age)
