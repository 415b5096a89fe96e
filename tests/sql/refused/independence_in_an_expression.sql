-- code: unsupported_sql
-- says: is not the only item
-- works: SELECT p_value < 0.05 AS found FROM (SELECT DP_CHI2_TEST(sex, insured) FROM patients) AS t
SELECT DP_CHI2_TEST(sex, insured) < 0.05 FROM patients
