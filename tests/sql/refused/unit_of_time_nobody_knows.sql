-- code: unsupported_sql
-- says: FORTNIGHT is not a supported unit of time
-- works: SELECT COUNT(*) FROM patients WHERE EXTRACT(year FROM admitted) = 2024
SELECT COUNT(*) FROM patients WHERE EXTRACT(fortnight FROM admitted) = 3
