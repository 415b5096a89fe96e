-- compare: rows
SELECT sex, insured, COUNT(*) AS n FROM patients GROUP BY GROUPING SETS ((sex), (insured), ())
