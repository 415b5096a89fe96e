-- compare: rows
SELECT insured, COUNT(*) AS n FROM patients AS p WHERE EXISTS (SELECT 1 FROM tariffs AS t WHERE t.city = p.city AND p.sex = t.sex AND t.fee > 10) GROUP BY insured
