-- code: too_large
-- says: levels
-- works: SELECT city, MEDIAN(age) FROM patients GROUP BY city
SELECT admitted, visits, MEDIAN(age) FROM patients GROUP BY admitted, visits
