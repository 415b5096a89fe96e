-- code: too_large
-- says: words and signs for each of
-- works: SELECT SUM(DECODE(visits, age, 1, age + 1, 2, 4)) AS n FROM patients
SELECT SUM(DECODE(DECODE(DECODE(DECODE(DECODE(visits, age, 1, age + 1, 2, age + 2, 3, 4), age, 1, age + 1, 2, age + 2, 3, 4), age, 1, age + 1, 2, age + 2, 3, 4), age, 1, age + 1, 2, age + 2, 3, 4), age, 1, age + 1, 2, age + 2, 3, 4)) AS n FROM patients
