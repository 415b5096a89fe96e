-- compare: ordered
SELECT "Blood Type" FROM patients GROUP BY "Blood Type" ORDER BY COUNT(*) DESC
