-- compare: rows
SELECT COUNT(*) FILTER (WHERE stay > 2.25) AS n, SUM(stay) FILTER (WHERE stay >= 2.5 AND stay < '9.75') AS days FROM patients
