-- code: unknown_name
-- says: duckdb_settings
-- works: SELECT * FROM data_privacy.domains
SELECT * FROM duckdb_settings
