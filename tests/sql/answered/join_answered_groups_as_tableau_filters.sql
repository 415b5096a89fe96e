-- compare: rows
SELECT "patients"."city" AS "city", COUNT(1) AS "cnt" FROM "public"."patients" "patients" INNER JOIN (SELECT "patients"."city" AS "city", COUNT(1) AS "$__alias__0" FROM "public"."patients" "patients" GROUP BY 1 ORDER BY 2 DESC, 1 ASC LIMIT 3) "t0" ON ("patients"."city" = "t0"."city") GROUP BY 1
