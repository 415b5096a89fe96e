-- compare: rows
SELECT city, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS percent FROM patients GROUP BY city
