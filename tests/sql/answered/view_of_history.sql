-- compare: none it lists measurements
-- spends: nothing
SELECT COUNT(*) AS n FROM data_privacy.history
