-- compare: rows
SELECT sex, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY CAST(stay AS DOUBLE PRECISION)) AS m, MEDIAN(cost / 100.0) AS hundreds, QUANTILE_CONT(2 * age - 1, 0.25) AS q FROM patients GROUP BY sex
