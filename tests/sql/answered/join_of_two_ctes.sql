-- compare: rows
WITH women AS (SELECT city, COUNT(*) AS n FROM patients WHERE sex = 'female' GROUP BY city), men AS (SELECT city, COUNT(*) AS n FROM patients WHERE sex = 'male' GROUP BY city) SELECT city, women.n - men.n AS surplus FROM women JOIN men USING (city)
