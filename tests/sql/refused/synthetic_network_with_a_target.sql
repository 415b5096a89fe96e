-- code: invalid_request
-- says: The method privbayes has no target or workload
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, columns => (sex, city), target => sex)
CREATE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, method => 'privbayes', target => sex, workload => 'SELECT COUNT(*) FROM patients GROUP BY sex')
