-- compare: rows
SELECT SUM(n) AS n FROM (SELECT COUNT(*) AS n FROM patients WHERE insured UNION ALL SELECT COUNT(*) FROM patients WHERE NOT insured) AS t
