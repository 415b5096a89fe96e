-- compare: none DuckDB has no such test
-- spends: nothing
EXPLAIN PRIVACY SELECT DP_CHI2_TEST(sex, insured) FROM patients
