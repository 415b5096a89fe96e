"""Statements on the Adult table of examples/adult that are the most work for their length.

Each was slow or large once, or is among the slowest that are answered now; all are within the
limits on a text. `PLANNED` are accepted by the planner, `REFUSED` are refused by it, with the code
listed. `SERVED` are little work to plan, and much to price, to estimate, to simulate or to compute
with. `FREE` are about the catalog, a public table or nothing: one call of a function makes
gigabytes, or a short text stands for much.
"""

# ruff: noqa: S608 - texts that are planned here, of constants alone

FROM = " FROM adult"
COUNTED = f"SELECT COUNT(*){FROM}"
TEXTS = "CONCAT(age::text, occupation, education, workclass"


def nested(innermost: str, around: str, depth: int) -> str:
    """A text put into `around`, where it says {}, again and again."""
    text = innermost
    for _ in range(depth):
        text = around.format(text)
    return text


def chain(first: str, step: str, n_steps: int) -> str:
    """WITH r0 AS (first), r1 AS (step of r0), ..; what follows reads the last of them."""
    ctes = [f"r0 AS (SELECT {first} FROM adult)"]
    ctes += [f"r{place} AS (SELECT {step} FROM r{place - 1})" for place in range(1, n_steps)]
    return f"WITH {', '.join(ctes)}"


def many(item: str, n: int, between: str = ", ") -> str:
    """Items with 0, 1, .. where they say {}."""
    return between.join(item.format(place) for place in range(n))


WIDE_STEP = ", ".join(f"c{place} + c{(place + 1) % 20} AS c{place}" for place in range(20))
TWENTY = ", ".join(f"age AS c{place}" for place in range(20))
OR_CHAIN = many("age + {} = 3", 200, " OR ")
LETTERS = f"UPPER({TEXTS}, '{'a' * 3000}'))"
OR_NULL, OR_ONE = "NULLIF({}, 'x')", "NULLIF({}, 1)"
LISTED = many("'{}'||sex", 2000)
CELLS = "age * hours_per_week * LENGTH(native_country)"
CUBE = "CUBE(sex, income, race, relationship, marital_status, education)"

# Doubling and its like, patterns on long texts, and what DuckDB writes out again.
REFUSED: dict[str, tuple[str, str]] = {
    "doubled text": (
        "too_large",
        f"{chain('sex AS a', 'a||a AS a', 40)} SELECT COUNT(*) FROM r39 WHERE a = 'x'",
    ),
    "doubled number": (
        "too_large",
        f"{chain('age AS a', 'a + a AS a', 30)} SELECT SUM(a) FROM r29",
    ),
    "doubled case": (
        "too_large",
        (
            f"{chain('age AS a', 'CASE WHEN a > 3 THEN a ELSE a + 1 END AS a', 20)} "
            "SELECT SUM(a) FROM r19"
        ),
    ),
    "doubled in nested subqueries": (
        "too_large",
        "SELECT COUNT(*) FROM "
        + nested("(SELECT sex AS a FROM adult) t", "(SELECT a||a AS a FROM {}) t", 28)
        + " WHERE a = 'x'",
    ),
    "twenty columns doubled": (
        "too_large",
        f"{chain(TWENTY, WIDE_STEP, 30)} SELECT SUM(c0) FROM r29",
    ),
    "long pattern on a long text": (
        "too_large",
        f"{COUNTED} WHERE {TEXTS}, '{'a' * 1000}') LIKE '%{'a_%' * 900}b'",
    ),
    "long pattern on two texts": (
        "too_large",
        f"{COUNTED} WHERE CONCAT(sex, '{'a' * 30_000}') LIKE '{'%a_' * 9000}b'",
    ),
    "hundred patterns": (
        "too_large",
        f"{COUNTED} WHERE "
        + many(f"{TEXTS}, '{'a' * 300}') LIKE '%{'a_%' * 30}b{{}}'", 100, " OR "),
    ),
    "search for a long text": (
        "too_large",
        f"{COUNTED} WHERE STRPOS({TEXTS}, '{'a' * 30_000}'), '{'a' * 15_000}b') > 1",
    ),
    "trim by a long text": (
        "too_large",
        f"{COUNTED} WHERE TRIM(BOTH '{'ab' * 8000}' FROM {TEXTS}, '{'a' * 30_000}')) = 'x'",
    ),
    "replacement in a long text": (
        "too_large",
        f"{COUNTED} WHERE REPLACE({TEXTS}, '{'a' * 8000}'), '{'a' * 4000}b', '') = 'x'",
    ),
    "letters of long texts": (
        "too_large",
        f"{COUNTED} WHERE {' || '.join([LETTERS] * 10)} = 'x'",
    ),
    "texts of gigabytes": (
        "too_large",
        (
            f"{COUNTED} WHERE CONCAT("
            f"{', '.join(['native_country', 'occupation', 'education', 'workclass', 'race'] * 400)}"
            ") = 'x'"
        ),
    ),
    "keys of gigabytes": (
        "too_large",
        f"SELECT CONCAT(age::text, occupation, '{'x' * 60_000}') AS k, COUNT(*){FROM} GROUP BY 1",
    ),
    "nested NULLIF": ("too_large", f"{COUNTED} WHERE {nested('sex', OR_NULL, 28)} = 'x'"),
    "nested NULLIF of an answer": (
        "too_large",
        f"SELECT {nested('COUNT(*)', OR_ONE, 28)} AS c{FROM}",
    ),
    "nested NULLIF in HAVING": (
        "too_large",
        f"SELECT sex{FROM} GROUP BY sex HAVING {nested('COUNT(*)', OR_ONE, 28)} > 2",
    ),
    "nested BETWEEN": (
        "too_large",
        f"{COUNTED} WHERE {nested('age', '({} BETWEEN 1 AND 2)::int', 14)} = 1",
    ),
    "nested IN": (
        "too_large",
        f"{COUNTED} WHERE {nested('age + 0', '({} IN (1, age, 3, age, 5))::int', 13)} > 3",
    ),
    "nested CASE of an operand": (
        "too_large",
        f"{COUNTED} WHERE "
        + nested("sex||''", "CASE {} WHEN 'x' THEN 'y' WHEN 'z' THEN 'u' END", 14)
        + " > 'x'",
    ),
    "brackets": ("too_large", f"SELECT a{'[1]' * 3000}{FROM}"),
    "many keys of many groups": (
        "too_large",
        f"{COUNTED} GROUP BY {many('age + {}', 300)}, hours_per_week, sex, relationship",
    ),
    "median of groups that tie columns": (
        "too_large",
        (
            "SELECT MEDIAN(hours_per_week) FROM adult GROUP BY (age + LENGTH(native_country) + "
            "education_num + LENGTH(race) + LENGTH(relationship) = 5)"
        ),
    ),
    "sets that tie columns": (
        "too_large",
        f"{COUNTED} GROUP BY GROUPING SETS ({many(f'({CELLS} * LENGTH(race) > {{}})', 60)})",
    ),
    "decimals on many levels": (
        "too_large",
        (
            "SELECT SUM(age::decimal(30, 5) * hours_per_week + LENGTH(native_country) * "
            "LENGTH(race) * age) FROM adult"
        ),
    ),
    "many sums on many levels": ("too_large", f"SELECT {many(f'SUM({CELLS} + {{}})', 90)}{FROM}"),
    "long list of computed values": (
        "too_large",
        f"{COUNTED} WHERE native_country || occupation || education IN ({LISTED})",
    ),
    "many deviations": (
        "too_large",
        f"SELECT {many('STDDEV(age + hours_per_week + {})', 300)}{FROM}",
    ),
    "more averages than are simulated": (
        "too_large",
        f"SELECT {many('AVG(age + {})', 250)}{FROM} GROUP BY sex, race",
    ),
    "quantiles of many groups": (
        "too_large",
        f"SELECT {many('QUANTILE_CONT(age, 0.{})', 300)}{FROM} GROUP BY native_country, education",
    ),
    "chain beyond the parser": ("too_large", f"{COUNTED} WHERE {many('age = {}', 2000, ' OR ')}"),
}

PLANNED: dict[str, str] = {
    "guards of many sums": f"SELECT {many('SUM(100 / (age - {} - 17))', 60)}{FROM} "
    f"WHERE age > 30 AND ({OR_CHAIN})",
    "four hundred filters": "SELECT "
    + ", ".join(
        f"COUNT(*) FILTER (WHERE age > {17 + k % 73} AND hours_per_week > {k % 97})"
        for k in range(400)
    )
    + FROM,
    "many computed filters": "SELECT "
    + many("COUNT(*) FILTER (WHERE age > {0}.5 + {0})", 600)
    + FROM,
    "cube of six": f"{COUNTED} GROUP BY {CUBE}",
    "cube of six, many sums": f"SELECT {many('SUM(age + {})', 100)}{FROM} GROUP BY {CUBE}",
    "many averages": f"SELECT {many('AVG(age + {})', 120)}{FROM} GROUP BY sex, race",
    "many averages in a chain": f"SELECT {many('AVG(age + {})', 200, ' + ')}{FROM}",
    "many quantiles": "SELECT "
    + many("QUANTILE_CONT(age, 0.{})", 40)
    + f"{FROM} GROUP BY race, relationship",
    "many keys": f"{COUNTED} GROUP BY {many('age + {}', 800)}",
    "many groups": f"{COUNTED} GROUP BY age, hours_per_week, sex, relationship",
    "long CASE": "SELECT SUM(CASE "
    + many("WHEN age + 0 = {0} THEN {0}", 900, " ")
    + f" END){FROM}",
    "long CASE as a key": "SELECT CASE "
    + many("WHEN age + hours_per_week = {0} THEN {0}", 900, " ")
    + f" END, COUNT(*){FROM} GROUP BY 1",
    "long list": f"{COUNTED} WHERE native_country || '' IN ("
    + ", ".join(f"'{k}'" for k in range(4900))
    + ")",
    "long chain": f"{COUNTED} WHERE {many('(age + {} = 3 AND hours_per_week > 4)', 230, ' OR ')}",
    "long sums": "SELECT "
    + many(f"SUM({' + '.join(['age', 'hours_per_week'] * 60)} + {{}})", 30)
    + FROM,
    "totals of one filtered table": f"WITH r AS (SELECT * FROM adult WHERE {OR_CHAIN}) SELECT "
    + many("COUNT(*) / (SELECT COUNT(*) FROM r WHERE age > {})", 80)
    + FROM,
    "conditions on many levels": f"{COUNTED} WHERE {many(f'{CELLS} <> {{}}', 12, ' AND ')}",
    "keys on many levels": f"SELECT ({CELLS} * LENGTH(race)) % 7 AS k, COUNT(*){FROM} GROUP BY 1",
    "text keys on many levels": "SELECT native_country || occupation || education || workclass AS "
    f"k, COUNT(*){FROM} GROUP BY 1",
    "exact keys": "SELECT age::decimal(38, 10) * hours_per_week * LENGTH(native_country) AS k, "
    f"COUNT(*){FROM} GROUP BY 1",
    "wide names through many CTEs": f"WITH r0 AS (SELECT {many('age AS a{}', 1000)} FROM adult), "
    + ", ".join(f"r{k} AS (SELECT * FROM r{k - 1})" for k in range(1, 600))
    + " SELECT COUNT(*) FROM r599",
    "pattern on three texts": f"{COUNTED} WHERE native_country || occupation || education LIKE "
    "'%a_%e%i_%o%s'",
    "parts of a union": " UNION ALL ".join(
        f"SELECT {', '.join(f'SUM(age + {64 * place + part})' for place in range(15))}{FROM}"
        for part in range(64)
    ),
}

DP = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"
BOXES = ", ".join(
    f"COUNT(*) FILTER (WHERE age > {17 + k % 70} AND hours_per_week < {1 + k % 97} "
    f"AND education_num = {1 + k % 16})"
    for k in range(400)
)
AGES, HOURS, NUMBERS = (
    f"(SELECT {column}, COUNT(*) AS n FROM adult GROUP BY {column})"
    for column in ("age", "hours_per_week", "education_num")
)

SERVED: dict[str, str] = {
    "four hundred boxes": f"SELECT {BOXES}{FROM}",
    "four hundred boxes, explained": f"EXPLAIN PRIVACY SELECT {BOXES}{FROM}",
    "four hundred boxes beyond the budget": f"{DP}(half_width => 0.2) {BOXES}{FROM}",
    "four hundred boxes with a cap": f"{DP}(epsilon => 0.000001) {BOXES}{FROM}",
    "cube of four": "SELECT sex, race, income, relationship, COUNT(*) FROM adult "
    "GROUP BY CUBE (sex, race, income, relationship)",
    "cube of five, made to agree": f"{DP}(consistency => 'nonnegative') sex, race, income, "
    "relationship, marital_status, COUNT(*) FROM adult "
    "GROUP BY CUBE (sex, race, income, relationship, marital_status)",
    "averages of many groups": "SELECT age, occupation, AVG(hours_per_week), "
    "AVG(education_num), STDDEV(hours_per_week) FROM adult GROUP BY age, occupation",
    "medians of many groups": "SELECT age, MEDIAN(hours_per_week), MEDIAN(education_num) "
    "FROM adult GROUP BY age",
    "relative ratios": f"{DP}(relative => 0.001) native_country, AVG(age) / AVG(hours_per_week)"
    " FROM adult GROUP BY native_country",
    "a relative target that is not reached": f"{DP}(relative => 0.000001, at_least => 1) "
    "COUNT(*) FROM adult WHERE age = 90",
    "independence simulated often": f"{DP}(replicates => 100000) "
    "DP_CHI2_TEST(native_country, occupation) FROM adult",
    "answers joined with each other": "SELECT COUNT(*) FROM "
    + ", ".join(f"{AGES} a{k}" for k in range(6))
    + " WHERE "
    + " AND ".join(f"a{k}.n + a{k + 1}.n <> {k}" for k in range(5)),
    "answers sorted in a window": "SELECT COUNT(*) FROM (SELECT RANK() OVER (ORDER BY a.n * b.n "
    f"- c.n) AS r FROM {AGES} a, {HOURS} b, {NUMBERS} c, {NUMBERS} d) t WHERE r > 5",
    "fifty thousand groups": "SELECT age, hours_per_week, relationship, COUNT(*), "
    "COUNT(*) FILTER (WHERE sex = 'Male') FROM adult GROUP BY age, hours_per_week, relationship",
}

REPLACED = "replace({}, 'a', relname||relname)"
PG = "FROM pg_catalog.pg_class"
DOUBLED = ", ".join(f"r{k} AS (SELECT a || a AS a FROM r{k - 1})" for k in range(1, 40))
JOINED = ", ".join(f"pg_catalog.pg_attribute a{k}" for k in range(6))

FREE: dict[str, str] = {
    "list of a billion": f"SELECT range(1000000000) AS x {PG} LIMIT 1",
    "length of a list": f"SELECT len(range(100000000)) {PG}",
    "list as a text": f"SELECT array_to_string(range(100000000), ',') {PG}",
    "number filled up": f"SELECT printf('%300000000d', 1) {PG}",
    "format filled up": f"SELECT format('%300000000s', relname) {PG}",
    "series of a billion": "SELECT * FROM generate_series(1, 1000000000) AS n, pg_class",
    "series up to a column": f"SELECT generate_series(1, relnatts * 100000000) {PG}",
    "types in types": f"SELECT {nested('25', 'format_type(25, {})', 8)} {PG}",
    "types in types, deeper": f"SELECT {nested('25', 'format_type(25, {})', 26)} {PG}",
    "text repeated": f"SELECT repeat(relname, 1000000000) {PG}",
    "text doubled": f"WITH r0 AS (SELECT relname AS a {PG}), {DOUBLED} SELECT a FROM r39",
    "text replaced by itself": f"SELECT {nested('relname', REPLACED, 9)} {PG}",
    "pattern on a text put together": f"SELECT 1 {PG} WHERE string_agg(relname, '') ~ '(a*)*b'",
    "nested NULLIF of a name": f"SELECT {nested('relname', OR_NULL, 26)} {PG}",
    "relations of the catalog joined": f"SELECT COUNT(*) FROM {JOINED}",
    "relations of the catalog sorted": f"SELECT a0.attname FROM {JOINED} ORDER BY a1.attname || "
    "a2.attname || a3.attname",
    "relations put together": "SELECT array_agg(a.attname || b.attname) FROM "
    "pg_catalog.pg_attribute a, pg_catalog.pg_attribute b, pg_catalog.pg_attribute c",
    "recursion without end": "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r) "
    "SELECT COUNT(*) FROM r, pg_class",
    "public rows joined": "SELECT COUNT(*) FROM countries a, countries b, countries c, countries d",
    "public rows doubled": "WITH r0 AS (SELECT country AS a FROM countries), "
    f"{DOUBLED} SELECT a FROM r39",
    "public rows put together": "SELECT STRING_AGG(a.country, b.country) FROM countries a, "
    "countries b, countries c",
    "public rows shown": "SELECT a.country || b.country AS k, a.*, b.* FROM countries a, "
    "countries b",
    "roots of roots": f"SELECT {nested('population', 'CBRT({})', 26)} FROM countries",
    "constant filled up": "SELECT LPAD('x', 2000000000, 'ab')",
    "constant repeated": f"SELECT {nested('1::text', 'REPEAT({}, 1000)', 6)}",
}
