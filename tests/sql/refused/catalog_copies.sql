-- code: too_large
-- says: words and signs
-- works: SELECT NULLIF(relname, 'x') FROM pg_class
SELECT NULLIF(NULLIF(NULLIF(NULLIF(NULLIF(NULLIF(NULLIF(NULLIF(NULLIF(NULLIF(NULLIF(NULLIF(NULLIF(relname, 'x'), 'x'), 'x'), 'x'), 'x'), 'x'), 'x'), 'x'), 'x'), 'x'), 'x'), 'x'), 'x') FROM pg_class
