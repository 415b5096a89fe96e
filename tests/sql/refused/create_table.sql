-- code: unsupported_sql
-- says: CREATE
-- works: SELECT city, COUNT(*) FROM patients GROUP BY city
CREATE TABLE copied AS SELECT * FROM patients
