-- compare: rows
SELECT COUNT(*) AS n FROM patients WHERE city = ANY(ARRAY['Oslo', 'Rome']) AND age <> ALL(ARRAY[30, 31])
