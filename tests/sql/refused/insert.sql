-- code: unsupported_sql
-- says: INSERT
-- works: SELECT COUNT(*) FROM patients
INSERT INTO patients (age) VALUES (44)
