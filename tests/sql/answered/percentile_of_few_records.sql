-- compare: rows
-- half_width: 100
SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY visits) AS late, PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY visits) AS early FROM patients WHERE age = 30
