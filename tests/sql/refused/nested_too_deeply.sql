-- code: too_large
-- says: nested
-- works: SELECT COUNT(*) FROM patients WHERE age > 1
SELECT COUNT(*) FROM patients WHERE ((((((((((((((((((((((((((((((((((((((((age > 1))))))))))))))))))))))))))))))))))))))))
