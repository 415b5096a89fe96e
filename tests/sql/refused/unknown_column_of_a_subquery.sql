-- code: unknown_name
-- says: people
-- works: SELECT n FROM (SELECT COUNT(*) AS n FROM patients) AS t
SELECT people FROM (SELECT COUNT(*) AS n FROM patients) AS t
