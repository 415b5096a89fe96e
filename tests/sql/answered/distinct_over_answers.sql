-- compare: rows
SELECT DISTINCT COUNT(*) > 10 AS enough FROM patients GROUP BY city
