-- code: unsupported_sql
-- says: has a named argument other than GIVEN
-- works: SELECT DP_CHI2_TEST(sex, insured, GIVEN => city) FROM patients
SELECT DP_CHI2_TEST(sex, insured, WHEN => city) FROM patients
