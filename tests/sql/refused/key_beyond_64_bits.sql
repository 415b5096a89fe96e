-- code: too_large
-- says: 64 bits
-- works: SELECT age * 1000 AS k, COUNT(*) FROM patients GROUP BY k
SELECT age * 1000000000000000000000 AS k, COUNT(*) FROM patients GROUP BY k
