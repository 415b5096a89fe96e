-- compare: rows
SELECT COUNT(*) FILTER (WHERE bmi >= 25) AS heavy, COUNT(*) FILTER (WHERE bmi < 18.5 AND bmi >= 0) AS light FROM patients
