-- compare: rows
SELECT sex, COUNT(*) AS n FROM (SELECT sex, age FROM (SELECT sex, age, insured FROM patients) AS a WHERE insured) AS b WHERE age < 50 GROUP BY sex
