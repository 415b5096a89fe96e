-- code: unknown_name
-- says: budget
-- works: SELECT * FROM data_privacy.budgets
SELECT * FROM data_privacy.budget
