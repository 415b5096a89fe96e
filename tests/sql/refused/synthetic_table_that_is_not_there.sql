-- code: unknown_name
-- says: no synthetic table
-- works: DROP SYNTHETIC TABLE IF EXISTS nobody
DROP SYNTHETIC TABLE nobody
