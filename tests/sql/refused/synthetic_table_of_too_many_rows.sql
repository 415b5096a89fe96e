-- code: too_large
-- says: 1000000
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, columns => (sex, city))
CREATE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, rows => 10000000)
