-- compare: rows
SELECT insured, SUM(fee) AS fees, SUM(fee * visits) AS paid, COUNT(fee) AS n FROM patients AS p JOIN tariffs AS t ON p.city = t.city AND p.sex = t.sex GROUP BY insured
