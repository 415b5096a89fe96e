-- code: invalid_target
-- says: whole number
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, rows => 1000, columns => (sex))
CREATE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, rows => 0.5)
