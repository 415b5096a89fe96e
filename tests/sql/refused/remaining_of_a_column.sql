-- code: unsupported_sql
-- says: quotes
-- works: SELECT * FROM estimate_remaining_dp_aggregates('patients')
SELECT * FROM estimate_remaining_dp_aggregates(patients)
