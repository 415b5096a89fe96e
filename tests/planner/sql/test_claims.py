"""Conditions of DP_PROBABILITY are read into ranges of one expression; the oracle tries numbers."""

import math

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from cube.refusals import TooLarge, UnsupportedSql
from planner.sql.names import N_RANGES_MAX, Claim, read_probability

NUMBERS = st.integers(-3, 3)
COMPARISONS = st.one_of(
    st.builds("n {} {}".format, st.sampled_from(["<", "<=", ">", ">="]), NUMBERS),
    st.builds("{} {} n".format, NUMBERS, st.sampled_from(["<", ">="])),
    st.builds("n BETWEEN {} AND {}".format, NUMBERS, NUMBERS),
)
CONDITIONS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.builds("NOT ({})".format, inner),
        st.builds("({}) AND ({})".format, inner, inner),
        st.builds("({}) OR ({})".format, inner, inner),
    ),
    max_leaves=6,
)


def read(condition: str) -> exp.Expr:
    return read_probability(parse_one(f"DP_PROBABILITY({condition})", read="postgres"))


def ranges(condition: str) -> list[tuple[float, float]]:
    return [one.ends for one in read(condition).find_all(Claim)]


def holds(condition: str, numbers: list[float]) -> list[bool]:
    """Where the condition is true, by DuckDB."""
    with duckdb.connect() as database:
        sql = f"SELECT {condition} FROM (SELECT UNNEST(?) AS n)"  # noqa: S608 - a text that is made above
        return [bool(found) for (found,) in database.execute(sql, [numbers]).fetchall()]


@given(CONDITIONS)
def test_the_ranges_of_a_condition_are_where_it_holds(condition: str) -> None:
    """At numbers between those that are compared with: ends have no probability."""
    numbers = [place + 0.5 for place in range(-5, 5)]
    expected = holds(condition, numbers)
    try:
        found = ranges(condition)
    except UnsupportedSql:
        assert not any(expected)
        return
    assert [sum(low < number <= high for low, high in found) for number in numbers] == expected


def test_an_answer_and_two_ends_are_a_range() -> None:
    assert ranges("n, 5, NULL") == [(5.0, math.inf)]
    assert ranges("n, NULL, 2.5") == [(-math.inf, 2.5)]
    assert ranges("n, -1, 2") == [(-1.0, 2.0)]


def test_more_ranges_than_the_limit_are_refused() -> None:
    few, many = (
        " OR ".join(f"n BETWEEN {10 * place} AND {10 * place + 1}" for place in range(size))
        for size in (N_RANGES_MAX, N_RANGES_MAX + 1)
    )
    assert len(ranges(few)) == N_RANGES_MAX
    with pytest.raises(TooLarge, match="more than 16 ranges"):
        read(many)


def test_two_answers_are_compared_by_their_difference() -> None:
    (claim,) = read("a > 2 * b").find_all(Claim)
    assert claim.this.sql() == "(a) - (2 * b)"
    assert claim.ends == (0.0, math.inf)


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("n = 3", "no comparison"),
        ("n", "no comparison"),
        ("n > 3, 4", "needs a condition"),
        ("n, 'x', 4", "no number"),
        ("1 > 3", "no noisy answer"),
        ("a > 3 AND b > 4", "ties several answers"),
        ("n > 3 AND n < 2", "can never hold"),
    ],
)
def test_what_is_no_claim_is_refused(condition: str, says: str) -> None:
    with pytest.raises(UnsupportedSql, match=says):
        read(condition)
