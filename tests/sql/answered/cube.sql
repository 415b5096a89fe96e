-- compare: rows
SELECT sex, insured, COUNT(*) AS n, GROUPING(sex, insured) AS level FROM patients GROUP BY CUBE (sex, insured)
