-- code: sql_syntax
-- says: no name for a synthetic table
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, columns => (sex, city))
CREATE SYNTHETIC TABLE "my patients" FROM patients WITH (epsilon => 1)
