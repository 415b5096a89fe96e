-- compare: rows
SELECT insured, REGR_SLOPE(cost, stay) AS slope, REGR_INTERCEPT(cost, stay) AS start, REGR_R2(cost, stay) AS r2, REGR_COUNT(visits, stay) AS n, REGR_AVGX(visits, stay) AS x, REGR_AVGY(visits, stay) AS y FROM patients GROUP BY insured
