-- code: invalid_request
-- says: The workload needs city, which is not among the columns
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, columns => (sex, city), workload => 'SELECT COUNT(*) FROM patients GROUP BY city')
CREATE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, columns => (sex, stay), workload => 'SELECT COUNT(*) FROM patients GROUP BY city')
