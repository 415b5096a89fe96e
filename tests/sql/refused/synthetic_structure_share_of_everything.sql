-- code: invalid_target
-- says: structure_share must be between 0 and 1
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, method => 'privbayes', columns => (sex, city), theta => 2, structure_share => 0.4, groups => cities.country, score => 'F')
CREATE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, method => 'privbayes', columns => (sex, city), structure_share => 1)
