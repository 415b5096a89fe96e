-- compare: rows
SELECT COUNT(*) FROM patients WHERE EXTRACT(year FROM admitted) = 2024 AND EXTRACT(day FROM admitted) <= 10
