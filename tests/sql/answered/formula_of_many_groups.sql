-- compare: none every group is shown, with the total beside it
-- n_rows: 511
SELECT EXTRACT(dow FROM admitted) AS weekday, age, SUM(COUNT(*)) OVER () AS total FROM patients GROUP BY 1, 2
