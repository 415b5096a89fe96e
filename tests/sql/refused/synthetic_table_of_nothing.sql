-- code: sql_syntax
-- says: Expected FROM
-- works: CREATE OR REPLACE SYNTHETIC TABLE s FROM patients WITH (epsilon => 1, columns => (sex, city))
CREATE SYNTHETIC TABLE s
