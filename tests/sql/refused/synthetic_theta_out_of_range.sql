-- code: invalid_target
-- says: theta must be a number from 0.1 to 1000
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, method => 'privbayes', columns => (sex, city), theta => 2, structure_share => 0.4, groups => cities.country, score => 'F')
CREATE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, method => 'privbayes', columns => (sex, city), theta => 0)
