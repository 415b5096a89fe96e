-- code: invalid_target
-- says: epsilon must not be negative
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, columns => (sex, city))
CREATE SYNTHETIC TABLE s FROM patients WITH (epsilon => -1)
