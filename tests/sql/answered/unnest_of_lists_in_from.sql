-- compare: rows
-- duckdb:
--   SELECT * FROM (VALUES ('a', 1, 1), ('b', 2, 2), ('c', NULL, 3)) AS v(a, b, o)
SELECT * FROM unnest(ARRAY['a', 'b', 'c'], ARRAY[1, 2]) WITH ORDINALITY AS u(a, b, o)
