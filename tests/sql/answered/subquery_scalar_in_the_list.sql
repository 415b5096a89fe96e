-- compare: rows
SELECT city, 100.0 * COUNT(*) / (SELECT COUNT(*) FROM patients) AS percent FROM patients GROUP BY city
