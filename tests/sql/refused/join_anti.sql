-- code: unsupported_sql
-- says: LEFT ANTI JOIN
-- works: SELECT COUNT(*) FROM patients LEFT JOIN cities ON patients.city = cities.city WHERE cities.country IS NULL
SELECT COUNT(*) FROM patients LEFT ANTI JOIN cities ON patients.city = cities.city
