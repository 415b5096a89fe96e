-- compare: rows
-- spends: nothing
SELECT 1 AS one
