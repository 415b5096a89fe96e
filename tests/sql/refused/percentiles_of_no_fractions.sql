-- code: unsupported_sql
-- says: has 0 fractions
-- works: SELECT PERCENTILE_CONT(ARRAY[0.5]) WITHIN GROUP (ORDER BY age) AS p FROM patients
SELECT PERCENTILE_CONT(ARRAY[]::float8[]) WITHIN GROUP (ORDER BY age) AS p FROM patients
