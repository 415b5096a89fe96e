-- compare: rows
SELECT CORR(age, visits) AS c, COVAR_POP(visits, age) AS p, COVAR_SAMP(cost, stay) AS s, CORR(stay, cost) FILTER (WHERE insured) AS i FROM patients
