-- compare: rows
select count(distinct("rows"."sex")) + max(case when "rows"."sex" is null then 1 else 0 end) as "a0" from (select "sex" from "public"."patients" "_") "rows"
