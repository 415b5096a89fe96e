-- code: invalid_target
-- says: hierarchies must be true or false
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, method => 'privbayes', columns => (sex, city), hierarchies => true, degree => 1, score => 'I')
CREATE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, method => 'privbayes', hierarchies => 2)
