-- compare: rows
SELECT CASE WHEN age < 40 THEN 'young' WHEN age < 65 THEN 'middle' ELSE 'old' END AS class, COUNT(*) AS n FROM patients GROUP BY class
