-- compare: rows
-- duckdb:
--   SELECT * FROM (VALUES (DATE '2024-01-31'), (DATE '2024-02-29'), (DATE '2024-03-29')) AS v(d)
SELECT d::date AS d FROM generate_series(date '2024-01-31', date '2024-03-31', interval '1 month') AS d
