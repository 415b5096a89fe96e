-- compare: none the lists are those of single fractions, tested elsewhere
-- n_rows: 5
SELECT city, PERCENTILE_CONT(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY age) AS p, PERCENTILE_DISC('{0.5}'::float8[]) WITHIN GROUP (ORDER BY admitted) AS d FROM patients GROUP BY city
