-- code: unsupported_sql
-- says: filter its rows in a subquery
-- works: SELECT COUNT(*) FROM patients AS p LEFT JOIN (SELECT * FROM tariffs WHERE fee > 10) AS t ON p.city = t.city AND p.sex = t.sex
SELECT COUNT(*) FROM patients AS p LEFT JOIN tariffs AS t ON p.city = t.city AND p.sex = t.sex AND t.fee > 10
