-- code: invalid_target
-- says: evaluate must not be negative
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, columns => (sex, city), evaluate => 0.05)
CREATE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, evaluate => -0.1)
