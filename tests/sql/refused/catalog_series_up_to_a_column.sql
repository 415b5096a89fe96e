-- code: unsupported_sql
-- says: makes a result whose length does not follow from the SQL text
-- works: SELECT generate_series(1, array_upper(conkey, 1)) FROM pg_constraint
SELECT generate_series(1, relnatts * 1000000) FROM pg_class
