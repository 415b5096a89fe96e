-- compare: rows
SELECT UPPER(city) AS city_name, COUNT(*) AS n FROM patients GROUP BY UPPER(city)
