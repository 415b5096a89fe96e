-- compare: none it describes the declaration, which DuckDB does not know
-- spends: nothing
-- n_rows: 11
SELECT column_name, kind, n_levels FROM data_privacy.domains WHERE table_name = 'patients' ORDER BY column_name
