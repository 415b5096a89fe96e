-- compare: rows
SELECT YEAR(admitted) AS y, QUARTER(admitted) AS q, LAST_DAY(admitted) AS ends, COUNT(*) AS n FROM patients WHERE DATE_DIFF('day', admitted, DATE '2024-02-29') > 10 AND admitted >= MAKE_DATE(2023, 11, 15) GROUP BY 1, 2, 3
