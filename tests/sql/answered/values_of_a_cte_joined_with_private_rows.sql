-- compare: rows
WITH v(city, region) AS (VALUES ('Oslo', 'north'), ('Rome', 'south'), ('Bergen', 'north')) SELECT region, SUM(age) AS n FROM patients JOIN v USING (city) GROUP BY region
