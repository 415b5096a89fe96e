-- compare: rows
SELECT sex, CAST(ROUND(COUNT(*)) AS BIGINT) AS n FROM patients GROUP BY sex
