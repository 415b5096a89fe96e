-- compare: rows
SELECT sex, GROUPING(sex) AS is_total, COUNT(*) AS n FROM patients GROUP BY ROLLUP (sex)
