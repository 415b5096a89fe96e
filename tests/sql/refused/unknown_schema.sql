-- code: unknown_name
-- says: hospital
-- works: SELECT COUNT(*) FROM public.patients
SELECT COUNT(*) FROM hospital.patients
