-- compare: none it depends on the budget
-- spends: nothing
-- n_rows: 1
SELECT * FROM estimate_remaining_dp_aggregates('patients')
