-- compare: rows
-- half_width: 400
SELECT sex, VAR_POP(age) AS spread FROM patients GROUP BY sex
