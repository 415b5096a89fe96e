-- code: invalid_request
-- says: Statement 2 of the workload does not read patients
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, columns => (sex, city), workload => 'SELECT sex, COUNT(*) FROM patients GROUP BY sex')
CREATE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, workload => 'SELECT sex, COUNT(*) FROM patients GROUP BY sex; SELECT 1')
