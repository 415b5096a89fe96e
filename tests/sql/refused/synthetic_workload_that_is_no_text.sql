-- code: invalid_target
-- says: workload must be a text between quotes
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, columns => (sex, city), workload => 'SELECT sex, COUNT(*) FROM patients GROUP BY sex')
CREATE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, workload => 3)
