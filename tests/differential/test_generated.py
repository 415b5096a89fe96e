"""Expressions at random mean in Tacit what they mean in a real PostgreSQL, wherever they stand."""

from collections.abc import Iterator
from typing import Final

import pytest

from tests.differential.expressions import BOOL, Expression
from tests.differential.places import Evaluators, evaluators, places, run
from tests.support.postgres import PostgresServer

N_FAST: Final = 1500
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


@pytest.mark.slow
def test_ten_thousand_expressions_mean_what_they_mean_in_postgresql(both: Evaluators) -> None:
    _assert_agrees(both, 36, N_SLOW)
