-- code: unsupported_sql
-- says: infinite
-- works: SELECT EXP(visits) AS k, COUNT(*) FROM patients GROUP BY k
SELECT 1e308::float8 * 10 * age AS k, COUNT(*) FROM patients GROUP BY k
