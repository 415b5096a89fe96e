-- compare: rows
SELECT sex, MAX(n) AS n FROM (SELECT sex, city, COUNT(*) AS n FROM patients GROUP BY ALL) AS t GROUP BY ALL
