-- compare: rows
SELECT SUM(stay * 1.2) AS longer, AVG(stay / 7) AS weeks, AVG(CAST(stay AS DOUBLE PRECISION)) AS mean, SUM(stay * cost) AS both, SUM(cost - stay) AS rest, SUM(CASE WHEN stay > 3 THEN stay ELSE 3 END) AS at_least FROM patients WHERE stay < 10.5
