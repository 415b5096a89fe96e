-- code: unsupported_sql
-- says: a SELECT with GROUP BY
-- works: SELECT DP_CHI2_TEST(sex, insured, GIVEN => city) FROM patients
SELECT DP_CHI2_TEST(sex, insured) FROM patients GROUP BY city
