-- compare: rows
SELECT "patients"."Blood Type", COUNT(*) AS "count" FROM "public"."patients" WHERE "patients"."age" > 50 GROUP BY "patients"."Blood Type"
