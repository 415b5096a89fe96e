-- code: too_large
-- says: fewer replicates
-- works: SELECT DP_CHI2_TEST(age / 20, visits, GIVEN => city) FROM patients
SELECT DP_CHI2_TEST(age, visits, GIVEN => city) FROM patients
