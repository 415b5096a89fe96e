-- code: unknown_name
-- says: cities has no column 'planet' beside its key
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, method => 'privbayes', columns => (sex, city), theta => 2, structure_share => 0.4, groups => cities.country, score => 'F')
CREATE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, method => 'privbayes', columns => (sex, city), groups => (cities.planet))
