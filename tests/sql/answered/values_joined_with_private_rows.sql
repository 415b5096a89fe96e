-- compare: rows
SELECT region, COUNT(*) AS n FROM patients AS t JOIN (VALUES ('Oslo', 'north'), ('Rome', 'south'), ('Kiel', 'east')) AS v(city, region) ON v.city = t.city GROUP BY region
