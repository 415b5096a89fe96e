-- compare: rows
SELECT sex, COUNT(*) AS n FROM patients AS p WHERE NOT EXISTS (SELECT 1 FROM tariffs AS t WHERE t.city = p.city AND t.sex = p.sex) GROUP BY sex
