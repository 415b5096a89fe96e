-- code: unsupported_sql
-- says: is not a literal
-- works: SELECT TO_CHAR(admitted, 'MM') AS m, COUNT(*) FROM patients GROUP BY 1
SELECT TO_CHAR(admitted, city) AS m, COUNT(*) FROM patients GROUP BY 1
