-- compare: rows
SELECT city, SUM(COUNT(*)) OVER w AS total, COUNT(*) OVER w AS n_cities FROM patients GROUP BY city WINDOW w AS ()
