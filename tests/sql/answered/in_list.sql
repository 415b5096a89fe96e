-- compare: rows
SELECT COUNT(*) FROM patients WHERE age IN (20, 30, 40) AND city NOT IN ('Oslo', 'Rome')
