-- code: unknown_name
-- says: patients has no column
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, columns => (sex, city), target => sex)
CREATE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, target => height)
