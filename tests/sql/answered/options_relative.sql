-- compare: rows
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(relative => 0.05, at_least => 500) COUNT(*) AS n FROM patients
