-- compare: none it explains and answers nothing
-- spends: nothing
EXPLAIN PRIVACY SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY n DESC
