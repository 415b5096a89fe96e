-- code: unsupported_sql
-- says: has months in its interval
-- works: SELECT TIME_BUCKET(INTERVAL '2 months', admitted) AS two_months, COUNT(*) AS n FROM patients GROUP BY 1
SELECT DATE_BIN(INTERVAL '2 months', admitted, DATE '2023-11-01') AS two_months, COUNT(*) AS n FROM patients GROUP BY 1
