-- compare: ordered
-- spends: nothing
SELECT * FROM cities ORDER BY population DESC LIMIT 3
