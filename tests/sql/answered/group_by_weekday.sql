-- compare: rows
SELECT EXTRACT(dow FROM admitted) AS weekday, COUNT(*) AS n FROM patients GROUP BY EXTRACT(dow FROM admitted)
