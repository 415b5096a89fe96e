-- code: unsupported_sql
-- says: Unimplemented type for cast
-- works: SELECT CAST(admitted AS VARCHAR) AS k, COUNT(*) AS n FROM patients GROUP BY admitted UNION ALL SELECT CAST(visits AS VARCHAR), COUNT(*) FROM patients GROUP BY visits
SELECT admitted AS k, COUNT(*) AS n FROM patients GROUP BY admitted UNION ALL SELECT visits, COUNT(*) FROM patients GROUP BY visits
