-- code: unsupported_sql
-- says: by a name that is not GIVEN
-- works: SELECT DP_CHI2_TEST(sex, insured, GIVEN => city) FROM patients
SELECT DP_CHI2_TEST(sex, insured, WHEN => city) FROM patients
