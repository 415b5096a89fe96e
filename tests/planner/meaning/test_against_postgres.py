"""Expressions on levels mean what PostgreSQL says: each is asked of both.

An expression that PostgreSQL refuses has to be refused; what is refused here alone stands in
DIFFERENT, and what is different on purpose: docs/sql.md says so.
"""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal

import psycopg
import pytest
from sqlglot import exp

from cube.axis import BooleanAxis, CategoryAxis, DateAxis, IntegerAxis
from cube.refusals import Refused
from cube.schema import Schema
from planner.domain.scratchpad import Scratchpad
from planner.sql.query_tree import parse
from planner.sql.statements import Query
from tests.support.postgres import PostgresServer

TEXTS = ("", " a b ", "Oslo", "os\\lo", "ÅRE", "ß straße", "a,b,c", "x%y_z", "foo bar-baz 12q")
SCHEMA = Schema(
    table="t",
    axes=(
        CategoryAxis(name="s", values=TEXTS, null=True),
        IntegerAxis(name="n", low=-7, high=8, null=True),
        BooleanAxis(name="b", null=True),
        DateAxis(name="d", low=dt.date(2024, 1, 28), high=dt.date(2024, 3, 3), null=True),
    ),
    n_records_max=100,
)
TYPES = {"s": "text", "n": "bigint", "b": "boolean", "d": "date"}

EXPRESSIONS = r"""
n / 2
n / 2.0
n % 3
-7 / 2
n / 3.0
(n / 2.0)::int
(n / 2.0)::float8::int
ROUND(n / 2.0)
ROUND(n / 4.0, 1)
ROUND((n / 2.0)::float8)
ROUND(n * 1.15, 1)
ROUND(n * 125, -1)
ROUND(1.005, 2)
ROUND(n)
ROUND(n) / 2
TRUNC(n / 4.0)
TRUNC(n / 4.0, 1)
TRUNC(n * 125, -1)
CEIL(n / 2.0)
CEIL(12345678901234567890) % 0.5
(-9223372036854775808 / 2) + n
-2147483648 / 3
FLOOR(n * 12345678901234567890) % 0.7
FLOOR(n / 2.0)
CEIL(n / 2.0::float8)
FLOOR((n / 3.0) * 3)
TRUNC((n / 3.0) * 3)
MOD(n, 3)
MOD(n * 1.5, 2)
MOD(n::float8, 2)
DIV(n, 2)
DIV(n * 1.5, 0.5)
n / 0
1 / (n - 3)
1.0 / (n - 3)
SQRT(n)
SQRT(ABS(n))
LN(n)
LN(n + 8.0)
LOG(100)
LOG(2, 8)
LOG(n + 8)
POWER(n, 2)
n ^ 3
2 ^ 0.5
POWER(n, 0.5)
POWER(0, n)
EXP(n)
EXP(1000::float8)
ABS(n)
SIGN(n)
SIGN(n / 2.0)
SIGN(n::float8)
CBRT(n)
GREATEST(n, 2.5)
LEAST(n, NULL)
GREATEST(NULL, n, 3)
COALESCE(n, 0)
COALESCE(n, 'x')
COALESCE(n, '7')
NULLIF(n, 3)
NULLIF(n, '3')
n + '3'
n + 'x'
n = '7'
n = '7.0'
n = ' 7 '
n IN ('1', '2')
n IN (1, 2.5)
n BETWEEN '1' AND '3'
n > 2.5
n = 2.0
n || 'x'
n::text
'x' || n || 'y'
(n * 1.50)::text
(n / 2.0)::numeric(10,2)::text
ROUND(n / 3.0, 2)::text
(n * 0.1::float8)::text
(n::float8)::text
(n * 1e15::float8)::text
(n * 1e-5::float8)::text
(n / 4.0::float8)::text
n::numeric::text
n::numeric(10,3)::text
n::float8 / 3
(n::float8 / 3)::text
CONCAT(n, s, b)
CONCAT(s, NULL, 1.50)
CONCAT_WS('-', s, n, NULL, b)
b::text
b || 'x'
n || n
b = 'on'
b = 'of'
b = 'y'
b = 'maybe'
b = 1
b::int
n::int::boolean
s::int
'12'::int
' 12 '::int
'1e3'::int
'1e3'::numeric
'2.5'::int
'2.5'::numeric
'-.5'::float8
'on'::boolean
'tru'::boolean
'x'::boolean
CAST('2024-02-30' AS DATE)
CAST('2024-02-29' AS DATE)
'20240229'::date
'Jan 8, 1999'::date
'1/8/1999'::date
'2024-02-29 25:00'::timestamp
'2024-02-29 12:30'::timestamp
'2024-02-29T12:30:15.25'::timestamp
'2024-02-29 12:30 PM'::timestamp
'12:30:00+00'::time
'13:30-08'::time
'04:05:06.789 UTC'::time
'12:30+05:30'::time < TIME '13:00'
'12:30 Europe/Oslo'::time
'12:30+16'::time
'25:00+01'::time
2147483647 + 1
2147483647::bigint + 1
3000000000::int
(n * 1000000000)::int
30000::smallint + 10000::smallint
LENGTH(s)
CHAR_LENGTH(s)
UPPER(s)
LOWER(s)
INITCAP(s)
REVERSE(s)
SUBSTRING(s, -1, 3)
SUBSTRING(s, 2)
SUBSTRING(s, 0)
SUBSTRING(s, n::int)
SUBSTRING(s, n::int, 3)
SUBSTRING(s, 2, -1)
SUBSTRING(s FROM 2 FOR 2)
SUBSTRING(s FROM 'o.')
SUBSTRING(s FROM '([a-z])b')
LEFT(s, 2)
LEFT(s, -2)
RIGHT(s, 2)
RIGHT(s, -2)
LEFT(s, n::int)
RIGHT(s, n::int)
LPAD(s, 3)
LPAD(s, 6, '*+')
RPAD(s, 6)
RPAD(s, 2)
LPAD(s, -1)
LPAD(s, 6, '')
REPEAT(s, 2)
REPEAT(s, -1)
SPLIT_PART(s, ',', 2)
SPLIT_PART(s, ',', -1)
SPLIT_PART(s, ',', 9)
SPLIT_PART(s, '', 1)
SPLIT_PART(s, ',', 0)
TRIM(s)
LTRIM(s)
RTRIM(s)
BTRIM(s, 'ao ')
TRIM(LEADING 'x' FROM s)
TRIM(TRAILING 'o' FROM s)
TRIM(BOTH FROM s)
REPLACE(s, 'o', '')
REPLACE(s, 'o', '0')
TRANSLATE(s, 'ao', '0')
TRANSLATE(s, 'abc', 'bca')
OVERLAY(s PLACING 'XX' FROM 2)
OVERLAY(s PLACING 'XX' FROM 2 FOR 1)
POSITION('o' IN s)
STRPOS(s, '')
STRPOS(s, 'lo')
ASCII(s)
CHR(228)
CHR(0)
STARTS_WITH(s, 'O')
s LIKE '%o%'
s LIKE 'os\\lo'
s LIKE 'os\lo'
s LIKE 'x\%y%'
s LIKE 'x!%y%' ESCAPE '!'
s LIKE 'os\lo' ESCAPE ''
s LIKE '%\'
s NOT LIKE '%a%'
s ILIKE 'OS%'
s ILIKE 'år_'
s NOT ILIKE '%A%'
s ~~ '%o'
s !~~ '%o'
n LIKE '1%'
s SIMILAR TO '(O|o)%'
s SIMILAR TO '[a-z]+'
s SIMILAR TO '%(o|b)%'
s NOT SIMILAR TO '_{4}'
s ~ '^O'
s ~* '^o'
s !~ 'o$'
s !~* 'O'
s ~ '\d'
s ~ '\w+\s\w'
s ~ '[[:digit:]]'
s ~ '[[:upper:]]'
s ~ 'a|b'
s ~ '(a)(,)'
s ~ 'o{1,2}'
s ~ '\.'
s ~ '['
REGEXP_REPLACE(s, 'o', '0')
REGEXP_REPLACE(s, '[ao]', 'x', 'g')
REGEXP_REPLACE(s, 'O', 'x', 'gi')
REGEXP_REPLACE(s, '(.)o', '\1\1', 'g')
REGEXP_REPLACE(s, 'a', '\&\&')
s < 'a'
s > 'O'
s = 'Oslo'
s = 5
CASE WHEN n > 0 THEN 'x' ELSE n END
CASE WHEN n > 0 THEN 'x' ELSE s END
CASE WHEN n > 0 THEN 1 ELSE 2.5 END
CASE WHEN n > 0 THEN n ELSE '5' END
CASE s WHEN 'Oslo' THEN 1 END
CASE n WHEN '7' THEN 1 WHEN 8 THEN 2 ELSE 0 END
s::varchar(3)
s::char(3)
'abc'::char(5) || 'x'
d + 1
d - 1
d - DATE '2024-01-01'
d - '2024-01-01'
d + INTERVAL '1 month'
d - INTERVAL '1 month'
d + INTERVAL '1 day 12:00:00'
d + INTERVAL '3 months ago'
d + INTERVAL '- 1 month'
d + 'P1M'::interval
d + INTERVAL 'P1DT2H'
d + INTERVAL '1-2' YEAR TO MONTH
d + INTERVAL '90' MINUTE
d + INTERVAL '1.5 months'
d + 2 * INTERVAL '1 week'
d + INTERVAL '1 month' * 1.5
d + INTERVAL '1 month' / 2
d + n * INTERVAL '1 day'
d + TIME '12:30'
d::timestamp
(d + INTERVAL '30 hours')::date
d::text
(d + INTERVAL '90 minutes')::text
(d + INTERVAL '1.5 seconds')::text
d = '2024-02-29'
d > '2024-02-15 12:00'
d = 'x'
d IN ('2024-02-01', '2024-02-02')
EXTRACT(YEAR FROM d)
EXTRACT(YEAR FROM d) / 10
EXTRACT(MONTH FROM d)
EXTRACT(DOW FROM d)
EXTRACT(ISODOW FROM d)
EXTRACT(DOY FROM d)
EXTRACT(WEEK FROM d)
EXTRACT(ISOYEAR FROM d - 40)
EXTRACT(QUARTER FROM d)
EXTRACT(DECADE FROM d)
EXTRACT(CENTURY FROM d)
EXTRACT(MILLENNIUM FROM d)
EXTRACT(EPOCH FROM d)
EXTRACT(JULIAN FROM d)
EXTRACT(SECOND FROM d + INTERVAL '1.25 seconds')
EXTRACT(MILLISECONDS FROM d + INTERVAL '1.25 seconds')
EXTRACT(MICROSECONDS FROM d + INTERVAL '1.25 seconds')
EXTRACT(EPOCH FROM d + INTERVAL '1.25 seconds')
EXTRACT(EPOCH FROM d + INTERVAL '1.25 seconds')::text
EXTRACT(HOUR FROM d + INTERVAL '90 minutes')
EXTRACT(EPOCH FROM INTERVAL '1 year 1 month 1 day 1 second')
EXTRACT(DAY FROM INTERVAL '40 days 25 hours')
EXTRACT(HOUR FROM INTERVAL '40 days 25 hours')
EXTRACT(MONTH FROM INTERVAL '14 months')
DATE_PART('dow', d)
DATE_TRUNC('week', d)
DATE_TRUNC('month', d)
DATE_TRUNC('quarter', d)
DATE_TRUNC('year', d)
DATE_TRUNC('decade', d)
DATE_TRUNC('century', d)
DATE_TRUNC('millennium', d)
DATE_TRUNC('hour', d + INTERVAL '90 minutes')
AGE(d, DATE '2023-12-31')
AGE(DATE '2023-12-31', d)
AGE(d, DATE '2023-12-31')::text
(INTERVAL '1 day' * n)::text
INTERVAL '1 day' = INTERVAL '24 hours'
INTERVAL '1 month' > INTERVAL '29 days'
MAKE_DATE(2024, 2, 29)
TO_CHAR(d, 'YYYY-MM-DD')
TO_CHAR(d, 'FMMonth DD, YYYY')
TO_CHAR(d, 'IYYY-IW')
TO_CHAR(n, '999')
TO_CHAR(n, '000')
TO_CHAR(n, 'FM999')
TO_CHAR(n * 1234.567, '9,999.99')
TO_CHAR(n * 1234.567, 'FM9,999.99')
TO_CHAR(n * 1234.567, '09999.9')
TO_CHAR(n * 0.125, '9.99')
TO_CHAR(n * 0.125, '0.99')
TO_CHAR(n * 0.125, 'FM0.99')
TO_CHAR(n * 0.125, 'FM9.99')
TO_CHAR(n, 'S99')
TO_CHAR(n, '99S')
TO_CHAR(n, '99MI')
TO_CHAR(n, 'MI99')
TO_CHAR(n, '99PR')
TO_CHAR(n * 100, '99')
TO_CHAR(n * 1000000, '9,999,999')
TO_CHAR(n * 1000000, 'FM9,999,999')
TO_CHAR(n, '"a"99')
TO_CHAR(n, 'L99')
TO_CHAR(n * 1000, '9G999D99')
TO_CHAR(n::float8 / 3, '9.999')
TO_CHAR(n, 'RN')
d::timestamp AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Oslo'
n IS NULL
b IS TRUE
b IS NOT TRUE
n IS DISTINCT FROM 3
n IS NOT DISTINCT FROM NULL
NOT b
n AND b
b AND 'true'
- n
-n ^ 2
1 + 2 * n
1.5 * n
0.1 + 0.2
0.1::float8 + 0.2::float8
1e3 + n
n * 0.333333333333
TRIM(s) = ''
s || NULL
s = NULL
n::smallint
n::real
WIDTH_BUCKET(n, 0, 10, 5)
'5' + 3
'a' || 'b'
5 || 'b'
'7' = 7
DATE '2024-01-31' + INTERVAL '1 month'
TIMESTAMP '2024-01-31 12:00' - TIMESTAMP '2024-01-30 11:00'
TIME '12:30' + INTERVAL '1 hour'
TIME '25:00'
INTERVAL '1 foo'
INTERVAL '2 days' + INTERVAL '3 hours'
n & 3
n | 3
n # 3
~ n
n >> 1
n & 1.5
(d, d + 1) OVERLAPS (DATE '2024-02-01', DATE '2024-02-02')
(d, INTERVAL '1 month') OVERLAPS (DATE '2024-02-10', DATE '2024-02-29')
d + MAKE_INTERVAL(months => 2, days => 3)
d + MAKE_INTERVAL(hours => 2, mins => 3, secs => 1.5)
JUSTIFY_DAYS(INTERVAL '40 days')::text
JUSTIFY_DAYS(INTERVAL '1 month -40 days')::text
JUSTIFY_HOURS(INTERVAL '-40 days 50 hours')::text
d = 'infinity'
d < 'infinity'
d > '-infinity'::date
'2024-01-01'::date = '2024-01-01 00:00'::timestamp
""".strip().splitlines()

DIFFERENT = (
    "s::char(3)",  # without the blanks at its end
    "TO_CHAR(n, 'RN')",  # refused
)


def value_of(value: object) -> object:
    """A value of either as what they are compared by."""
    if isinstance(value, Decimal | int | float) and not isinstance(value, bool):
        return float(f"{float(value):.12g}")
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat()
    if isinstance(value, dt.date):
        return dt.datetime.combine(value, dt.time()).isoformat()
    return value


@pytest.fixture(scope="module")
def scratchpad() -> Scratchpad:
    return Scratchpad({"t": SCHEMA})


@pytest.fixture(scope="module")
def connection(postgres_server: PostgresServer) -> Iterator[psycopg.Connection]:
    with postgres_server.connect("template1") as first:
        first.execute(
            "CREATE DATABASE meaning TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C.UTF-8'"
        )
    with postgres_server.connect("meaning") as opened:
        opened.execute("SET TimeZone = 'UTC'")
        for name, sql_type in TYPES.items():
            opened.execute(f"CREATE TABLE levels_{name} (place int, {name} {sql_type})")
            levels = enumerate(SCHEMA.by_name[name].levels)
            for place, level in levels:
                into = f"INSERT INTO levels_{name} VALUES (%s, %s)"  # noqa: S608 - own names
                opened.execute(into, [place, level])
        yield opened


def own(scratchpad: Scratchpad, sql: str) -> tuple[tuple[str, ...], list[object]] | str:
    """The columns of an expression, and its value on each combination; or why it is refused."""
    try:
        tree = parse(Query(f"SELECT {sql}")).tree.selects[0]
        found = scratchpad.evaluate(tree, table="t")
    except Refused as refused:
        return str(refused)
    values = [
        None if null else value
        for value, null in zip(found.values.ravel().tolist(), found.null.ravel(), strict=True)
    ]
    return found.axes, values


def theirs(connection: psycopg.Connection, sql: str, axes: tuple[str, ...]) -> list[object] | str:
    """What PostgreSQL says; or why it refuses."""
    tables = "".join(f", levels_{name}" for name in axes)
    places = ", ".join(f"levels_{name}.place" for name in axes) or "1"
    source = f"FROM (VALUES (1)) AS one (one){tables} ORDER BY {places}"
    text = f"SELECT {sql} {source}"
    try:
        return [value for (value,) in connection.execute(text).fetchall()]
    except psycopg.Error as error:
        return str(error).splitlines()[0]


def compared(scratchpad: Scratchpad, connection: psycopg.Connection, sql: str) -> str | None:
    """How the two differ; None if they do not."""
    found = own(scratchpad, sql)
    axes = tuple(name for name in ("b", "d", "n", "s") if name in _names(sql))
    expected = theirs(connection, sql, axes)
    if isinstance(found, str) or isinstance(expected, str):
        if isinstance(found, str) and isinstance(expected, str):
            return None
        return f"here {str(found)[:300]}, there {str(expected)[:200]}"
    left, right = list(map(value_of, found[1])), list(map(value_of, expected))
    if left == right:
        return None
    pairs = [(a, b) for a, b in zip(left, right, strict=False) if a != b]
    return f"here, there: {pairs[:4]}"


def _names(sql: str) -> set[str]:
    tree = parse(Query(f"SELECT {sql}")).tree
    return {column.name for column in tree.find_all(exp.Column)}


@pytest.mark.parametrize("start", range(0, len(EXPRESSIONS), 60))
def test_every_expression_means_what_postgresql_says(
    scratchpad: Scratchpad, connection: psycopg.Connection, start: int
) -> None:
    differences = {
        sql: found
        for sql in EXPRESSIONS[start : start + 60]
        if sql not in DIFFERENT and (found := compared(scratchpad, connection, sql)) is not None
    }
    assert differences == {}


@pytest.mark.parametrize("sql", DIFFERENT)
def test_what_differs_on_purpose_still_differs(
    scratchpad: Scratchpad, connection: psycopg.Connection, sql: str
) -> None:
    assert compared(scratchpad, connection, sql) is not None
