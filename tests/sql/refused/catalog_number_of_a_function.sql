-- code: unknown_name
-- says: There is no function 'nothing'
-- works: SELECT 'pg_class'::regclass::oid
SELECT 'nothing'::regproc::oid
