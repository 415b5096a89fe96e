-- compare: rows
WITH patients AS (SELECT sex FROM public.patients WHERE insured) SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex
