-- compare: rows
-- half_width: 100
SELECT PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY age) AS late FROM patients WHERE insured
