-- code: unsupported_sql
-- says: FILTER
-- works: SELECT sex, COUNT(*) FILTER (WHERE city = 'Oslo') AS oslo, COUNT(*) FILTER (WHERE city = 'Rome') AS rome FROM patients GROUP BY sex
PIVOT patients ON city USING COUNT(*) GROUP BY sex
