-- compare: rows
SELECT COUNT(*) AS n FROM patients AS p JOIN cities AS c ON p.city = c.city WHERE c.is_capital AND p.age > 50
