-- compare: none DuckDB has no such test
-- spends: nothing
EXPLAIN PRIVACY SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(statistic => 'g2')
       DP_CHI2_TEST(sex, insured, city) FROM patients
