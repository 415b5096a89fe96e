-- code: invalid_target
-- says: Did you mean 'columns'
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, columns => (sex, city))
CREATE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, column => (sex))
