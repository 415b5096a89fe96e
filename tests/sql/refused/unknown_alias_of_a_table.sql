-- code: unknown_name
-- says: q.age
-- works: SELECT COUNT(*) FROM patients AS p WHERE p.age > 50
SELECT COUNT(*) FROM patients AS p WHERE q.age > 50
