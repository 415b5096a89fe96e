-- compare: rows
WITH coarse AS (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 100) COUNT(*) AS n FROM patients), fine AS (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 30) COUNT(*) AS n FROM patients WHERE insured) SELECT fine.n / coarse.n AS share FROM fine, coarse
