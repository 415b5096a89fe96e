-- compare: rows
SELECT AVG((DATE '2026-01-01' - admitted) / 365.25) AS a, AVG((admitted - DATE '2023-01-01') / 7.0 + 2) AS b, STDDEV((DATE '2026-01-01' - admitted) / 30.4) AS c FROM patients
