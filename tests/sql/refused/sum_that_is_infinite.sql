-- code: unsupported_sql
-- says: infinite
-- works: SELECT SUM(CASE WHEN age < 20 THEN EXP(age) END) FROM patients
SELECT SUM(EXP(age * 100.0)) FROM patients
