-- code: unsupported_sql
-- says: rows_per_unit_max where a person has several rows
-- works: SELECT a.sex, a.n, b.n AS insured FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) AS a JOIN (SELECT sex, COUNT(*) AS n FROM patients WHERE insured GROUP BY sex) AS b ON a.sex = b.sex
SELECT COUNT(*) FROM patients AS a, patients AS b WHERE a.age = b.age
