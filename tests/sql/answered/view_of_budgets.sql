-- compare: none what was spent depends on what was asked before
-- spends: nothing
-- n_rows: 1
SELECT * FROM data_privacy.budgets
