-- compare: rows
SELECT city, COUNT(*) AS n FROM patients WHERE age = ANY((ARRAY[30, 31])::INT[]) OR NOT sex <> ALL(ARRAY['male']) GROUP BY city
