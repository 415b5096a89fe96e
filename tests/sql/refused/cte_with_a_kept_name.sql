-- code: unsupported_sql
-- says: is a name that Tacit reserves
-- works: WITH a AS (SELECT COUNT(*) AS n FROM patients) SELECT n FROM a
WITH tacit_part_0 AS (SELECT COUNT(*) AS n FROM patients) SELECT n FROM tacit_part_0
