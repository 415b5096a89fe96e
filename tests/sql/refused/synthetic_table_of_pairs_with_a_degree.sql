-- code: invalid_request
-- says: has no setting degree
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, method => 'privbayes', columns => (sex, city), hierarchies => true, degree => 1, score => 'I')
CREATE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, degree => 2)
