-- compare: rows
SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE admitted < TIMESTAMP '2024-01-01 10:00:00') AS before FROM patients WHERE admitted + INTERVAL '1 month' > TIMESTAMP '2023-12-31 23:59:59'
