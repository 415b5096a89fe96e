-- code: too_large
-- says: combinations
-- works: SELECT COUNT(*) FROM patients WHERE age > 40 OR visits > 3
SELECT COUNT(*) FROM patients WHERE age > 40 OR visits > 3 OR admitted > DATE '2024-01-01' OR sex = 'male' OR city = 'Oslo' OR "Blood Type" = 'A'
