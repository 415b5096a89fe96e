-- code: unsupported_sql
-- says: 2**40
-- works: SELECT SUM(age * visits) FROM patients
SELECT SUM(age * age * age * age * visits * visits * visits * visits * visits * visits) FROM patients
