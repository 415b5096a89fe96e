-- compare: rows
SELECT sex, DATE_TRUNC('month', admitted) AS m, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM patients WHERE age > 30 GROUP BY ALL
