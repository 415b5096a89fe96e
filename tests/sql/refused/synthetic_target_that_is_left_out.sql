-- code: invalid_request
-- says: The target city is not among the columns
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, columns => (sex, city), target => (sex, city))
CREATE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, columns => (sex, stay), target => city)
