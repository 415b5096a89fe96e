-- compare: rows
SELECT COUNT(*) AS n FROM patients WHERE cost > 40 * stay OR stay IS NULL
