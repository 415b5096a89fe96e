-- compare: rows
-- duckdb:
--   SELECT COUNT(*) AS n FROM patients WHERE city IN ('Oslo', 'Paris') AND admitted IN (DATE '2024-01-01', DATE '2024-01-03')
SELECT COUNT(*) AS n FROM patients WHERE city IN (SELECT c FROM unnest(ARRAY['Oslo', 'Paris']) AS c) AND admitted IN (SELECT unnest(ARRAY['2024-01-01', '2024-01-03']::date[]))
