-- code: unsupported_sql
-- says: infinite
-- works: SELECT EXP(visits) AS k, COUNT(*) FROM patients GROUP BY k
SELECT EXP(age * 100.0) AS k, COUNT(*) FROM patients GROUP BY k
