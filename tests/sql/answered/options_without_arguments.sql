-- compare: rows
SELECT WITH DIFFERENTIAL_PRIVACY sex, COUNT(*) AS n FROM patients GROUP BY sex
