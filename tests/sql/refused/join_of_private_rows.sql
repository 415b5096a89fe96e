-- code: unsupported_sql
-- says: rows_per_unit_max where a person has several rows
-- works: SELECT a.n, b.n FROM (SELECT COUNT(*) AS n FROM patients) AS a, (SELECT COUNT(*) AS n FROM patients WHERE insured) AS b
SELECT COUNT(*) FROM patients AS a JOIN patients AS b ON a.age = b.age
