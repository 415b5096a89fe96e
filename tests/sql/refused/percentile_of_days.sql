-- code: unsupported_sql
-- says: numeric column
-- works: SELECT admitted, SUM(COUNT(*)) OVER (ORDER BY admitted) AS so_far FROM patients GROUP BY admitted
SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY admitted) AS day FROM patients
