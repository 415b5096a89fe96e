-- compare: rows
SELECT a.n - b.n AS uninsured FROM (SELECT COUNT(*) AS n FROM patients) AS a CROSS JOIN (SELECT COUNT(*) AS n FROM patients WHERE insured) AS b
