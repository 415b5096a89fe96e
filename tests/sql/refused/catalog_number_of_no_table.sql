-- code: unknown_name
-- says: There is no class 'nobody'
-- works: SELECT 'patients'::regclass::oid
SELECT 'nobody'::regclass::oid
