-- compare: rows
SELECT /* how many */ COUNT(*) -- of them
FROM patients;
