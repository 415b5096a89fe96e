-- code: unsupported_sql
-- says: Statement 1 of the workload: This would show private rows
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, columns => (sex, city), workload => 'SELECT sex, COUNT(*) FROM patients GROUP BY sex')
CREATE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, workload => 'SELECT * FROM patients')
