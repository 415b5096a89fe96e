-- code: sql_syntax
-- says: a date, and visits, a whole number
-- works: SELECT CAST(admitted AS VARCHAR) AS k, COUNT(*) AS n FROM patients GROUP BY admitted UNION ALL SELECT CAST(visits AS VARCHAR), COUNT(*) FROM patients GROUP BY visits
SELECT admitted AS k, COUNT(*) AS n FROM patients GROUP BY admitted UNION ALL SELECT visits, COUNT(*) FROM patients GROUP BY visits
