-- code: unsupported_sql
-- says: a text is no bigint
-- works: SELECT COUNT(sex) FROM patients
SELECT COUNT(CAST(sex AS BIGINT)) FROM patients
