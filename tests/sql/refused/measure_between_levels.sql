-- code: outside_domain
-- says: stay never equals 2.25
-- works: SELECT COUNT(*) FROM patients WHERE stay BETWEEN 2 AND 2.5
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(refuse_unknown_values => true) COUNT(*) FROM patients WHERE stay = 2.25
