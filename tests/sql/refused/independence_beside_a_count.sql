-- code: unsupported_sql
-- says: is not the only item
-- works: SELECT p_value FROM (SELECT DP_CHI2_TEST(sex, insured) FROM patients) AS t
SELECT DP_CHI2_TEST(sex, insured), COUNT(*) FROM patients
