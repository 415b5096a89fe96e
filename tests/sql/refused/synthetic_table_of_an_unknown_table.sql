-- code: unknown_name
-- says: There is no table 'patient'
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, columns => (sex, city))
CREATE SYNTHETIC TABLE s FROM patient WITH (epsilon => 1)
