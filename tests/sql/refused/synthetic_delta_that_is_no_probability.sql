-- code: invalid_target
-- says: delta must be a probability
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, columns => (sex, city))
CREATE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, delta => 1)
