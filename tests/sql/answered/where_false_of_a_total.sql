-- compare: rows
-- spends: nothing
SELECT COUNT(*) AS n FROM patients WHERE 1 = 0
