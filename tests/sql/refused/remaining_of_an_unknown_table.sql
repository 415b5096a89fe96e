-- code: unknown_name
-- says: nobody
-- works: SELECT * FROM estimate_remaining_dp_aggregates('patients')
SELECT * FROM estimate_remaining_dp_aggregates('nobody')
