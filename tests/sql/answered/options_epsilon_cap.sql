-- compare: rows
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width = 200, epsilon = 1) COUNT(*) AS n FROM patients
