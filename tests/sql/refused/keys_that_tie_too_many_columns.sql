-- code: too_large
-- says: combinations
-- works: SELECT age + visits > 50 AS many, COUNT(*) FROM patients GROUP BY many
SELECT age + visits + EXTRACT(doy FROM admitted) > 100 AS a, sex || city || "Blood Type" || age = 'x' AS b, COUNT(*) FROM patients GROUP BY a, b
