-- compare: rows
SELECT sex, city, 1.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY sex) AS share FROM patients GROUP BY sex, city
