-- code: sql_syntax
-- says: cannot be the name of a synthetic table
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, columns => (sex, city))
CREATE SYNTHETIC TABLE "my patients" FROM patients WITH (epsilon => 1)
