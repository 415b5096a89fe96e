-- code: unknown_name
-- says: occupation
-- works: SELECT city, COUNT(*) FROM patients GROUP BY city
SELECT occupation, COUNT(*) FROM patients GROUP BY occupation
