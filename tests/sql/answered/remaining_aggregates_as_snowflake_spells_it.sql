-- compare: none it depends on the budget
-- spends: nothing
-- n_rows: 1
SELECT * FROM TABLE(DATA_PRIVACY.ESTIMATE_REMAINING_DP_AGGREGATES('patients'))
