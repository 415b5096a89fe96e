-- compare: rows
SELECT sex, PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY admitted) AS day FROM patients GROUP BY sex
