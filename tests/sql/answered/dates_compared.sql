-- compare: rows
SELECT COUNT(*) FROM patients WHERE admitted >= DATE '2023-12-24' AND admitted < DATE '2023-12-24' + INTERVAL '7 days'
