-- compare: rows
SELECT (SELECT COUNT(*) FROM patients WHERE insured) AS insured, (SELECT COUNT(*) FROM patients) AS everybody
