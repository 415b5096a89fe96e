-- code: too_large
-- says: combinations
-- works: SELECT COUNT(*) FROM patients WHERE age + visits > 50 AND LENGTH(city) > LENGTH(sex)
SELECT COUNT(*) FROM patients WHERE age > EXTRACT(doy FROM admitted) AND EXTRACT(doy FROM admitted) > visits AND visits > LENGTH(city) AND LENGTH(city) > LENGTH(sex) AND LENGTH(sex) > LENGTH("Blood Type")
