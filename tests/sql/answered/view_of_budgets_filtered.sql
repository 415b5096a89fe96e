-- compare: none what was spent depends on what was asked before
-- spends: nothing
-- n_rows: 1
SELECT table_name, spent, "left" FROM data_privacy.budgets WHERE table_name = 'patients'
