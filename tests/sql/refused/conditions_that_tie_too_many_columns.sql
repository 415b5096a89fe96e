-- code: too_large
-- says: combinations
-- works: SELECT COUNT(*) FROM patients WHERE age > 40 AND visits > 3 AND sex = 'male'
SELECT COUNT(*) FROM patients WHERE age + visits + EXTRACT(doy FROM admitted) + LENGTH(sex) + LENGTH(city) + LENGTH("Blood Type") > 100
