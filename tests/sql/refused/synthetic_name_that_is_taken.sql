-- code: name_taken
-- says: Patients is taken
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, columns => (sex, city))
CREATE SYNTHETIC TABLE Patients FROM patients WITH (epsilon => 1)
