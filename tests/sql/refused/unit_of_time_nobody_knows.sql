-- code: unsupported_sql
-- says: MILLENNIUM is not a supported unit of time
-- works: SELECT COUNT(*) FROM patients WHERE EXTRACT(year FROM admitted) = 2024
SELECT COUNT(*) FROM patients WHERE EXTRACT(millennium FROM admitted) = 3
