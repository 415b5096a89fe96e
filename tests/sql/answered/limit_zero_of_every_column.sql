-- compare: none a probe for types, which protected columns answer with their declared ones
-- spends: nothing
-- n_rows: 0
SELECT * FROM patients LIMIT 0
