-- compare: rows
SELECT COUNT(*) FILTER (WHERE city LIKE '%o') AS ends, COUNT(*) FILTER (WHERE city ILIKE 'p_ris') AS paris FROM patients
