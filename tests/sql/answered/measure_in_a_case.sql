-- compare: rows
-- half_width: 20000
SELECT SUM(CASE WHEN insured THEN cost ELSE 0 END) AS insured_cost FROM patients
