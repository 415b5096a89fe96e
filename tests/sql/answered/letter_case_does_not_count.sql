-- compare: rows
select CITY, count(*) as N from Patients where AGE > 30 group by City
