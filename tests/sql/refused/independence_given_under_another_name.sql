-- code: unsupported_sql
-- says: GIVEN => (c, d)
-- works: SELECT DP_CHI2_TEST(sex, insured, GIVEN => city) FROM patients
SELECT DP_CHI2_TEST(sex, insured, WHEN => city) FROM patients
