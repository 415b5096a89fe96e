"""What dashboards and analysts send about a shop in one day, as the tools write it.

Each statement has the tool or the habit it comes from. `UNANSWERABLE` holds what is refused for a
reason, with the code of the refusal; `ABOUT_THE_SERVER` what drivers and tools ask before anything
else. Only the text is here: `benchmarks.shop` asks it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement and where it comes from."""

    origin: str
    sql: str


def _statements(*pairs: tuple[str, str]) -> tuple[Statement, ...]:
    return tuple(Statement(origin, " ".join(sql.split())) for origin, sql in pairs)


ANSWERED = _statements(
    (
        "superset count",
        """SELECT segment AS segment, COUNT(*) AS count FROM public.customers GROUP BY segment
           ORDER BY count DESC LIMIT 100""",
    ),
    (
        "superset sum",
        """SELECT churned AS churned, SUM(revenue) AS "SUM(revenue)" FROM public.customers
           GROUP BY churned ORDER BY "SUM(revenue)" DESC LIMIT 100""",
    ),
    (
        "superset mixed",
        """SELECT segment AS segment, COUNT(*) AS "COUNT(*)", AVG(revenue) AS "AVG(revenue)",
           SUM(spent) AS "SUM(spent)" FROM public.customers GROUP BY segment
           ORDER BY "COUNT(*)" DESC LIMIT 1000""",
    ),
    (
        "superset time grain",
        """SELECT DATE_TRUNC('month', signup_date) AS __timestamp, COUNT(*) AS count
           FROM public.customers WHERE signup_date >= TO_DATE('2025-01-01', 'YYYY-MM-DD')
           AND signup_date < TO_DATE('2026-01-01', 'YYYY-MM-DD')
           GROUP BY DATE_TRUNC('month', signup_date) ORDER BY count DESC LIMIT 50000""",
    ),
    (
        "superset series limit",
        """SELECT DATE_TRUNC('year', signup_date) AS __timestamp, city AS city, COUNT(*) AS count
           FROM public.customers JOIN (SELECT city AS city__, COUNT(*) AS mme_inner__
           FROM public.customers GROUP BY city ORDER BY mme_inner__ DESC LIMIT 5) AS series_limit
           ON city = city__ GROUP BY DATE_TRUNC('year', signup_date), city
           ORDER BY count DESC LIMIT 10000""",
    ),
    (
        "superset virtual table",
        """SELECT plan AS plan, SUM(n) AS "SUM(n)" FROM (SELECT plan, city, COUNT(*) AS n
           FROM customers GROUP BY plan, city) AS virtual_table GROUP BY plan
           ORDER BY "SUM(n)" DESC LIMIT 1000""",
    ),
    (
        "superset filter box",
        """SELECT city AS city FROM public.customers GROUP BY city ORDER BY city ASC LIMIT 1000""",
    ),
    (
        "superset percent",
        """SELECT plan, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS share FROM customers
           GROUP BY plan""",
    ),
    (
        "metabase count",
        """SELECT COUNT(*) AS "count" FROM "public"."customers"
           WHERE "public"."customers"."plan" = 'pro'""",
    ),
    (
        "metabase last months",
        """SELECT DATE_TRUNC('month', "public"."customers"."signup_date") AS "signup_date",
           COUNT(*) AS "count" FROM "public"."customers"
           WHERE ("public"."customers"."signup_date" >= CAST(DATE_TRUNC('month',
           CAST((NOW() + INTERVAL '-24 month') AS timestamp)) AS date))
           AND ("public"."customers"."signup_date" < CAST(DATE_TRUNC('month', NOW()) AS date))
           GROUP BY DATE_TRUNC('month', "public"."customers"."signup_date")
           ORDER BY DATE_TRUNC('month', "public"."customers"."signup_date") ASC""",
    ),
    (
        "metabase bins",
        """SELECT FLOOR(("public"."customers"."spent" / 250.0)) * 250.0 AS "spent",
           COUNT(*) AS "count" FROM "public"."customers"
           GROUP BY FLOOR(("public"."customers"."spent" / 250.0)) * 250.0
           ORDER BY FLOOR(("public"."customers"."spent" / 250.0)) * 250.0 ASC""",
    ),
    (
        "metabase distinct values",
        """SELECT COUNT(DISTINCT "public"."customers"."city") AS "count"
           FROM "public"."customers" """,
    ),
    (
        "metabase case",
        """SELECT SUM(CASE WHEN "public"."customers"."churned" = TRUE THEN 1 ELSE 0.0 END) /
           CAST(COUNT(*) AS DOUBLE PRECISION) AS "share" FROM "public"."customers" """,
    ),
    (
        "looker month",
        """SELECT (TO_CHAR(DATE_TRUNC('month', customers.signup_date ), 'YYYY-MM'))
           AS "customers.signup_month", COUNT(*) AS "customers.count"
           FROM public.customers AS customers
           WHERE ((( customers.signup_date ) >= (DATE(TIMESTAMP '2024-01-01'))
           AND ( customers.signup_date ) < (DATE(TIMESTAMP '2024-07-01'))))
           GROUP BY 1 ORDER BY 1 DESC FETCH NEXT 500 ROWS ONLY""",
    ),
    (
        "looker sum",
        """SELECT cities.region AS "cities.region", COALESCE(SUM(customers.spent ), 0)
           AS "customers.total_spent" FROM public.customers AS customers
           LEFT JOIN public.cities AS cities ON customers.city = cities.city
           GROUP BY 1 ORDER BY 2 DESC LIMIT 500""",
    ),
    (
        "looker average",
        """SELECT customers.plan AS "customers.plan", AVG(customers.spent ) AS "customers.average"
           FROM public.customers AS customers WHERE (customers.segment IN ('consumer',
           'small business')) GROUP BY 1 ORDER BY 2 DESC LIMIT 500""",
    ),
    (
        "looker yes no",
        """SELECT CASE WHEN customers.n_orders > 5 THEN 'Yes' ELSE 'No' END AS "customers.loyal",
           COUNT(*) AS "customers.count" FROM public.customers AS customers GROUP BY 1
           ORDER BY 2 DESC LIMIT 500""",
    ),
    (
        "tableau year",
        """SELECT CAST(EXTRACT(YEAR FROM "customers"."signup_date") AS INTEGER)
           AS "yr:signup_date:ok", AVG(CAST("customers"."revenue" AS DOUBLE PRECISION))
           AS "avg:revenue:ok" FROM "public"."customers" "customers" GROUP BY 1
           HAVING (COUNT(1) > 0)""",
    ),
    (
        "tableau sum",
        """SELECT "customers"."plan" AS "plan", SUM("customers"."spent") AS "sum:spent:ok"
           FROM "public"."customers" "customers" GROUP BY 1""",
    ),
    (
        "tableau median",
        """SELECT "customers"."plan" AS "plan", PERCENTILE_CONT(0.5) WITHIN GROUP
           (ORDER BY CAST("customers"."revenue" AS DOUBLE PRECISION)) AS "med:revenue:ok"
           FROM "public"."customers" "customers" GROUP BY 1""",
    ),
    (
        "tableau context filter",
        """SELECT "customers"."city" AS "city", COUNT(1) AS "cnt"
           FROM "public"."customers" "customers" INNER JOIN (SELECT "customers"."city" AS "city",
           COUNT(1) AS "$__alias__0" FROM "public"."customers" "customers" GROUP BY 1
           ORDER BY 2 DESC, 1 ASC LIMIT 10) "t0" ON ("customers"."city" = "t0"."city")
           GROUP BY 1""",
    ),
    (
        "tableau quarter",
        """SELECT DATE_TRUNC('QUARTER', CAST("customers"."signup_date" AS TIMESTAMP))
           AS "tqr:signup_date:ok", COUNT(1) AS "cnt" FROM "public"."customers" "customers"
           GROUP BY 1""",
    ),
    (
        "tableau number of records",
        """SELECT SUM(1) AS "sum:Number of Records:ok" FROM "public"."customers" "customers"
           HAVING (COUNT(1) > 0)""",
    ),
    (
        "power bi distinct",
        """select count(distinct("rows"."city")) +
           max(case when "rows"."city" is null then 1 else 0 end) as "a0"
           from (select "city" from "public"."customers" "_") "rows" """,
    ),
    (
        "power bi group",
        """select "rows"."plan" as "plan", sum("rows"."spent") as "a0", count(1) as "a1"
           from (select "_"."plan", "_"."spent" from "public"."customers" "_") "rows"
           group by "plan" order by "plan" limit 1000001""",
    ),
    (
        "power bi filter",
        """select sum(cast("rows"."revenue" as decimal)) as "a0" from (select "revenue"
           from "public"."customers" "_" where "_"."segment" = 'enterprise') "rows" """,
    ),
    (
        "grafana series",
        """SELECT date_trunc('month', signup_date) AS "time", plan AS metric, count(*) AS value
           FROM customers WHERE signup_date BETWEEN '2025-01-01' AND '2025-12-31'
           GROUP BY 1, 2 ORDER BY 1, 2""",
    ),
    (
        "grafana week",
        """SELECT date_trunc('week', signup_date) AS "time", count(*) FROM customers
           WHERE signup_date >= '2026-07-06' AND signup_date < '2026-10-05'
           GROUP BY 1 ORDER BY 1""",
    ),
    ("total", "SELECT COUNT(*) FROM customers"),
    (
        "rolling months",
        "SELECT COUNT(*) FROM customers WHERE signup_date >= CURRENT_DATE - INTERVAL '24 months'",
    ),
    (
        "age",
        """SELECT EXTRACT(YEAR FROM AGE(DATE '2026-01-01', birth_date)) AS age, COUNT(*)
           FROM customers GROUP BY 1 ORDER BY 1""",
    ),
    (
        "age bands",
        """SELECT CASE WHEN AGE(birth_date) < INTERVAL '30 years' THEN 'under 30'
           WHEN AGE(birth_date) < INTERVAL '60 years' THEN '30 to 59' ELSE '60 and over' END
           AS band, COUNT(*) FROM customers GROUP BY 1""",
    ),
    (
        "width_bucket",
        """SELECT width_bucket(n_orders, 0, 50, 10) AS b, COUNT(*) FROM customers
           GROUP BY 1 ORDER BY 1""",
    ),
    (
        "width_bucket of money",
        """SELECT width_bucket(revenue, 0, 5000, 10) AS b, COUNT(*) FROM customers
           WHERE revenue IS NOT NULL GROUP BY 1 ORDER BY 1""",
    ),
    (
        "median date",
        "SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY signup_date) AS m FROM customers",
    ),
    ("median money", "SELECT MEDIAN(revenue) FROM customers WHERE plan <> 'free'"),
    ("quartile of orders", "SELECT QUANTILE_CONT(n_orders, 0.75) FROM customers"),
    ("corr", "SELECT CORR(n_orders, revenue) FROM customers"),
    ("corr of money", "SELECT CORR(spent, revenue) FROM customers"),
    (
        "trend",
        """SELECT REGR_SLOPE(spent, n_orders) AS slope, REGR_INTERCEPT(spent, n_orders) AS base
           FROM customers""",
    ),
    (
        "cohort gap",
        """SELECT EXTRACT(YEAR FROM signup_date) AS y, COUNT(*) FROM customers
           WHERE last_order - signup_date > 365 GROUP BY 1 ORDER BY 1""",
    ),
    ("approx distinct", "SELECT APPROX_COUNT_DISTINCT(city) FROM customers"),
    ("distinct city", "SELECT plan, COUNT(DISTINCT city) AS cities FROM customers GROUP BY plan"),
    ("filter sum", "SELECT SUM(spent) FILTER (WHERE NOT churned) AS s FROM customers"),
    ("where money", "SELECT COUNT(*) FROM customers WHERE revenue > 1000"),
    (
        "group money",
        """SELECT CASE WHEN revenue > 1000 THEN 'big' ELSE 'small' END AS b, COUNT(*)
           FROM customers GROUP BY 1""",
    ),
    (
        "sum where money",
        "SELECT plan, SUM(revenue) AS r FROM customers WHERE revenue >= 19.99 GROUP BY plan",
    ),
    ("money by plan", "SELECT plan, SUM(revenue) AS r FROM customers GROUP BY plan"),
    ("money by plan again", "SELECT plan, SUM(revenue) / 1000 AS r FROM customers GROUP BY plan"),
    ("average by plan", "SELECT plan, AVG(revenue) AS a FROM customers GROUP BY plan"),
    (
        "spread",
        "SELECT plan, STDDEV(spent) AS s, VARIANCE(spent) AS v FROM customers GROUP BY plan",
    ),
    (
        "per capita",
        """SELECT region, COUNT(*) * 1000000.0 / SUM(DISTINCT population) AS per_million
           FROM customers JOIN cities USING (city) GROUP BY region""",
    ),
    (
        "string_agg",
        """SELECT STRING_AGG(city, ',') FROM (SELECT city FROM customers GROUP BY city
           HAVING COUNT(*) > 2500) t""",
    ),
    (
        "to_char day",
        "SELECT TO_CHAR(signup_date, 'Day') AS dow, COUNT(*) FROM customers GROUP BY 1",
    ),
    ("mode", "SELECT MODE() WITHIN GROUP (ORDER BY plan) FROM customers"),
    (
        "exists",
        """SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM cities x
           WHERE x.city = c.city AND x.population > 1000000)""",
    ),
    (
        "in a public table",
        """SELECT plan, COUNT(*) FROM customers
           WHERE city IN (SELECT city FROM cities WHERE region = 'north') GROUP BY plan""",
    ),
    (
        "in the largest",
        """SELECT plan, COUNT(*) FROM customers WHERE city IN (SELECT city FROM customers
           GROUP BY city ORDER BY COUNT(*) DESC LIMIT 3) GROUP BY plan""",
    ),
    ("group all", "SELECT plan, COUNT(*) FROM customers GROUP BY ALL"),
    (
        "rollup",
        "SELECT segment, plan, COUNT(*) FROM customers GROUP BY ROLLUP (segment, plan)",
    ),
    (
        "pivot by hand",
        """SELECT segment, COUNT(*) FILTER (WHERE plan = 'free') AS free,
           COUNT(*) FILTER (WHERE plan = 'pro') AS pro FROM customers GROUP BY segment""",
    ),
    (
        "rank",
        """SELECT city, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place
           FROM customers GROUP BY city QUALIFY place <= 3""",
    ),
    (
        "running total",
        """SELECT m, SUM(n) OVER (ORDER BY m) AS total FROM (SELECT DATE_TRUNC('year', signup_date)
           AS m, COUNT(*) AS n FROM customers GROUP BY 1) t ORDER BY m""",
    ),
    (
        "year on year",
        """WITH y AS (SELECT EXTRACT(YEAR FROM signup_date) AS year, COUNT(*) AS n FROM customers
           GROUP BY 1) SELECT year, n, n - LAG(n) OVER (ORDER BY year) AS growth FROM y
           ORDER BY year""",
    ),
    (
        "churn",
        """SELECT plan, AVG(CASE WHEN churned THEN 1.0 ELSE 0 END) AS churn FROM customers
           GROUP BY plan""",
    ),
    (
        "hours",
        """SELECT last_order_hour, COUNT(*) FROM customers WHERE last_order_hour IS NOT NULL
           GROUP BY 1 ORDER BY 1""",
    ),
    ("nulls", "SELECT COUNT(*) - COUNT(revenue) AS missing FROM customers"),
    (
        "last order months",
        """SELECT TO_CHAR(last_order, 'YYYY-MM') AS m, COUNT(*) FROM customers
           WHERE last_order >= DATE '2026-01-01' GROUP BY 1 ORDER BY 1""",
    ),
    (
        "orders by month",
        """SELECT DATE_TRUNC('month', ordered_at) AS m, AVG(amount) AS a FROM orders
           WHERE ordered_at >= DATE '2026-01-01' GROUP BY 1 ORDER BY 1""",
    ),
    (
        "sales by category",
        "SELECT category, SUM(amount) AS sales FROM orders GROUP BY category ORDER BY sales DESC",
    ),
    (
        "sales by channel",
        """SELECT channel, SUM(amount) AS sales, COUNT(*) AS n, SUM(quantity) AS items FROM orders
           WHERE NOT returned GROUP BY channel""",
    ),
    ("weekday", "SELECT DAYNAME(ordered_at) AS d, COUNT(*) FROM orders GROUP BY 1"),
)

UNANSWERABLE = (
    (
        "metabase rows",
        """SELECT "public"."customers"."plan" AS "plan", "public"."customers"."city" AS "city"
           FROM "public"."customers" LIMIT 2000""",
        "unsupported_sql",
    ),
    ("extremes", "SELECT MIN(revenue), MAX(revenue) FROM customers", "unsupported_sql"),
    (
        "superset range",
        "SELECT MIN(signup_date) AS min, MAX(signup_date) AS max FROM public.customers",
        "unsupported_sql",
    ),
    ("tablesample", "SELECT COUNT(*) FROM customers TABLESAMPLE BERNOULLI (10)", "unsupported_sql"),
    ("pivot", "PIVOT customers ON plan USING COUNT(*) GROUP BY segment", "unsupported_sql"),
    ("unknown literal", "SELECT COUNT(*) FROM customers WHERE plan = 'gold'", "outside_domain"),
    ("typo", "SELECT plann, COUNT(*) FROM customers GROUP BY plann", "unknown_name"),
)

ABOUT_THE_SERVER = (
    "SELECT version()",
    "SELECT current_schema()",
    "SELECT current_database()",
    "SELECT current_user",
    "SHOW server_version",
    "SHOW transaction_isolation",
    "SHOW TABLES",
    "SHOW ALL",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'",
    """SELECT column_name, data_type FROM information_schema.columns
       WHERE table_name = 'customers' ORDER BY ordinal_position""",
    "SELECT nspname FROM pg_catalog.pg_namespace",
    """SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE c.relkind = 'r'""",
    "DESCRIBE customers",
    "SELECT NOW()",
    "SELECT CURRENT_TIMESTAMP",
    "SELECT CURRENT_DATE",
    "EXPLAIN SELECT COUNT(*) FROM customers",
    "SELECT COUNT(*) FROM customers; SELECT 1",
    "SELECT schema_name FROM information_schema.schemata",
    "SELECT * FROM information_schema.tables",
)
