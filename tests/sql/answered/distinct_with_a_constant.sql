-- compare: rows
SELECT g, COUNT(*) AS n FROM (SELECT city AS g, 'x' AS k, COUNT(*) AS m FROM patients GROUP BY 1, 2) AS t GROUP BY g
