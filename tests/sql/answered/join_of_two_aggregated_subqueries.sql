-- compare: rows
SELECT a.city, a.n AS insured, b.n AS everybody, a.n / b.n AS share FROM (SELECT city, COUNT(*) AS n FROM patients WHERE insured GROUP BY city) AS a JOIN (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS b ON a.city = b.city
