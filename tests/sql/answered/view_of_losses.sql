-- compare: none it lists charges
-- spends: nothing
SELECT analyst, COUNT(*) AS n FROM data_privacy.losses GROUP BY analyst
