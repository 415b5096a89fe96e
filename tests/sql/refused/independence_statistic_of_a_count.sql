-- code: invalid_target
-- says: level, replicates and statistic are options of a test
-- works: SELECT COUNT(*) FROM patients
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(statistic => 'g2') COUNT(*) FROM patients
