-- code: invalid_request
-- says: The workload uses no columns
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, columns => (sex, city), workload => 'SELECT COUNT(*) FROM patients WHERE sex IS NULL')
CREATE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, workload => 'SELECT COUNT(*) FROM patients')
