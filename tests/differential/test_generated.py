"""Expressions at random mean in Tacit what they mean in a real PostgreSQL, wherever they stand."""

from collections.abc import Iterator
from typing import Final

import pytest

from tests.differential.expressions import BOOL, SUMMED, Expression
from tests.differential.places import Evaluators, evaluators, places, run
from tests.support.postgres import PostgresServer

N_FAST: Final = 400
N_SLOW: Final = 10_000
REFUSED_MAX: Final = 0.4  # more, and the generator has no teeth


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> Iterator[Evaluators]:
    with evaluators(tmp_path_factory.mktemp("both"), postgres_server) as found:
        yield found


def _assert_agrees(both: Evaluators, seed: int, n_expressions: int) -> None:
    found = run(both, seed, n_expressions)
    assert not found.differences, "\n".join(found.differences)
    assert found.refused <= REFUSED_MAX * found.tried


def test_expressions_mean_what_they_mean_in_postgresql(both: Evaluators) -> None:
    _assert_agrees(both, 35, N_FAST)


@pytest.mark.parametrize(
    ("columns", "sql"),
    [
        ("is", "(i, s) IS NULL"),
        ("is", "(i, s) IS NOT NULL"),
        ("is", "NOT (i, s) IS NULL"),
        ("is", "(i, s) IS DISTINCT FROM (1, NULL)"),
        ("is", "(i, s) IS NOT DISTINCT FROM (1, NULL)"),
        ("is", "(i, s) NOT IN ((1, 'a'), (2, NULL))"),
        ("i", "(i, i) BETWEEN (1, 1) AND (2, 2)"),
        ("i", "i NOT IN (1, 2) = (i > 0)"),
        ("i", "i IS NOT NULL = (i > 0)"),
        ("n", "n::int"),
        ("n", "n::text"),
        ("n", "ROUND(n)"),
        ("d", "d::timestamp"),
        ("d", "d + INTERVAL '1 day'"),
        ("n", "n % 0.1"),
        ("d", "(DATE_PART('day', d) / 4)::int"),
        ("d", "DATE_PART('day', d) % 10"),
        ("i", "DATE '2024-01-01' - i * 3::bigint"),
        ("i", "MAKE_DATE(2024, i * 3::bigint, 1)"),
        ("s", "SUBSTR(s, 2::bigint)"),
        ("i", "EXP(-1e3::float8 * COALESCE(i * i + 1, 1))"),
        ("i", "3000000000 ^ (-2147483648 - i * i)"),
        ("i", "'7'::text::int + i"),
        ("i", "'x'::text::int IS NULL"),
        ("i", "'true'::text AND i > 0"),
        ("i", "i > 0 OR NOT 'no'::text"),
        ("i", "NULLIF(i, 0.5) / 2"),
        ("i", "NULLIF(i, 0.5::float8) / 2"),
        ("i", "NULLIF(i, 2::bigint) / 2"),
        ("i", "i | NULLIF(1, 0.5)"),
        ("d", "d + MAKE_INTERVAL(days => 3000000000)"),
        ("d", "TIMESTAMPTZ '2000-01-01 05:30Z' + INTERVAL '-1 month -36 hours'"),
        ("d", "TIMESTAMPTZ '2000-01-01 05:30Z' - INTERVAL '1 month 36 hours'"),
        ("d", "d - 2147483647"),
        ("d", "d + 10000000"),
        ("d", "MAKE_DATE(2024, LEAST(3000000000, 1), 1)"),
        ("m", "CASE WHEN m IS NULL THEN m ELSE m + INTERVAL '1 month' * 3000000000 END"),
        ("m", "COALESCE(TIMESTAMPTZ '2024-01-01' AT TIME ZONE 'America/New_York', m)"),
        ("m", "TIMESTAMPTZ '2024-03-31 02:30:00+02' < '2024-03-31 02:30+02' AND m IS NOT NULL"),
        ("m", "(TIMESTAMPTZ '2024-03-31 02:30:00+02')::text || m::text"),
        ("m", "CONCAT(TIMESTAMPTZ '2024-03-31 02:30:00+02' + INTERVAL '1 month', m)"),
        ("m", "GREATEST(INTERVAL '3 months ago', m - TIMESTAMP '2025-01-01')"),
        ("m", "LEAST(INTERVAL '30 days', INTERVAL '1 month', m - m + INTERVAL '2 months')"),
        ("m", "TO_CHAR(m, 'YY/MM/DD')::date"),
        ("m", "TO_CHAR(m, 'YYYY-MM-DD')::time"),
        ("m", "TO_CHAR(m, 'YYYY-MM-DD')::date"),
        ("m", "TO_CHAR(m, 'YYYY-MM-DD HH24:MI')::timestamp"),
        ("m", "(m - TIMESTAMP '2025-01-01')::text::interval"),
        ("i", "GREATEST(DIV(i + 2.00, 2.675), 1.5)"),
        ("i", "(12345678901234567890 % -0.05) + i"),
        ("i", "(12345678901234567890 % 2.675) < i"),
        ("i", "FLOOR((i + 2.00) / 3) < 0.25"),
        ("i", "ROUND(i / 3.0, 1) = 0.333"),
        ("i", "ROUND(EXTRACT(EPOCH FROM TIME '23:59:59.5'), 0) + i"),
        ("i", "(CEIL(12345678901234567890) % 0.5) + i"),
        ("i", "(GREATEST((-2147483648), 2147483647) << 2) + i"),
        ("i", "(-9223372036854775808 >> 60) + i"),
        ("s", "INITCAP('ß' || s)"),
        ("s", "RIGHT(s, -2147483648)"),
        ("i", "RIGHT('a,b,c', i)"),
        ("i", "CASE WHEN i = 2 THEN MOD(9::numeric, 4) ELSE 0.25 END"),
        ("i", "CASE WHEN i = 2 THEN i::numeric * i::numeric ELSE 0.5 END"),
        ("i", "GREATEST(i::numeric(38,0), 0.75)"),
        ("i", "CASE WHEN i = 2 THEN ROUND(i::numeric(38,5), 1) ELSE 0.12345678 END"),
        ("i", "0.25 IN (i::numeric(38,0), 0::numeric(38,0))"),
        ("i", "NULLIF(i::numeric(38,0), 0.75) IS NULL"),
        ("i", "INTERVAL '3000000 hours' * i"),
        ("i", "(i * 1.005::float8)::numeric(8,2)"),
        ("i", "ROUND((i * 1.005::float8)::numeric, 2)"),
        ("i", "TRUNC((i * 1e18::float8)::numeric, -17)"),
        ("i", "ROUND((i * 1e25::float8)::numeric, 2) > 1"),
        ("i", "(i * 0.1::float8)::numeric % 0.1"),
        ("i", "TRUNC((i * 0.29::float8 * 100)::numeric, 0)"),
    ],
)
def test_an_expression_that_differed_agrees_in_every_place(
    both: Evaluators, columns: str, sql: str
) -> None:
    found = [
        f"[{place.name}] {difference}"
        for place in places()
        if set(columns) <= set(place.columns) and place.only is None
        for _, _, difference in both.compare(place, [Expression(BOOL, sql)])
        if difference is not None
    ]
    assert not found


@pytest.mark.parametrize(
    ("columns", "sql"),
    [
        ("s", "COUNT(CAST(s AS integer))"),
        ("i", "COUNT(('-7')::boolean)"),
        ("i", "COUNT(i::text)"),
        ("i", "COUNT('x'::text::int)"),
        ("i", "COUNT(CAST((1e20::float8)::numeric(8,2) AS bigint))"),
        ("i", "COUNT((NULL::date + '3')::text)"),
    ],
)
def test_what_is_counted_that_differed_agrees(both: Evaluators, columns: str, sql: str) -> None:
    asked = [
        place for place in places() if place.only == SUMMED and set(columns) <= set(place.columns)
    ]
    found = [
        difference
        for place in asked
        for _, _, difference in both.compare(place, [Expression(SUMMED, sql)])
        if difference is not None
    ]
    assert asked
    assert not found


@pytest.mark.slow
def test_ten_thousand_expressions_mean_what_they_mean_in_postgresql(both: Evaluators) -> None:
    _assert_agrees(both, 36, N_SLOW)
