-- code: unsupported_sql
-- says: infinite
-- works: SELECT SUM(CASE WHEN age < 20 THEN EXP(age) END) FROM patients
SELECT SUM(1e60::float8 * 1e60::float8 * 1e60::float8 * 1e60::float8 * 1e60::float8 * 1e60::float8 * age) FROM patients
