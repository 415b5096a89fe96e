-- code: invalid_request
-- says: Groups are at least two, and fewer than what they group
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, method => 'privbayes', columns => (sex, city), theta => 2, structure_share => 0.4, groups => cities.country, score => 'F')
CREATE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, method => 'privbayes', columns => (sex, city), groups => cities.population)
