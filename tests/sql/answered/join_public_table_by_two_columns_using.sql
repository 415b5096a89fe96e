-- compare: rows
SELECT city, sex, band, COUNT(*) AS n FROM patients JOIN tariffs USING (sex, city) GROUP BY city, sex, band
