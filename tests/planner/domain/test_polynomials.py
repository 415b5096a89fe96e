"""Polynomials of a column against the same arithmetic in fractions, level by level."""

import operator
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from cube.axis import Axis, IntegerAxis, MeasureAxis, NumericAxis
from planner.domain.exact_levels import (
    exact_levels,
    is_level,
    on_levels,
    polynomial_of,
    stored_type,
)
from planner.sql.query_tree import parse
from planner.sql.statements import Query

CENTS = MeasureAxis(name="x", low=Fraction(-1, 2), high=2, step=Fraction(1, 100), null=True)
WHOLE = IntegerAxis(name="x", low=-3, high=9, other=99, null=True)

_APPLIED: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


def scalar(sql: str) -> exp.Expr:
    tree: exp.Expr = parse(Query(f"SELECT {sql}")).tree.selects[0]
    return tree


def levels(axis: Axis) -> list[Fraction]:
    return [
        Fraction(level) if isinstance(level, int) else Fraction(str(level))
        for level in axis.levels
        if isinstance(level, int | float)
    ]


Formula = tuple[str, Callable[[Fraction], Fraction]]


def _joined(sign: str, one: Formula, other: Formula) -> Formula:
    apply = _APPLIED[sign]
    return f"({one[0]} {sign} {other[0]})", lambda x: apply(one[1](x), other[1](x))


CONSTANTS = st.sampled_from(["0.1", "3", "2.50", "1000"])
FORMULAS: st.SearchStrategy[Formula] = st.recursive(
    st.one_of(
        st.just(("x", lambda x: x)),
        st.just(("(- x)", lambda x: -x)),
        CONSTANTS.map(lambda text: (text, lambda _x: Fraction(text))),
    ),
    lambda inner: st.one_of(
        st.builds(_joined, st.sampled_from(sorted(_APPLIED)), inner, inner),
        inner.map(lambda one: (f"({one[0]} / 0.8)", lambda x: one[1](x) / Fraction("0.8"))),
        inner.map(lambda one: (f"CAST({one[0]} AS DOUBLE PRECISION)", one[1])),
    ),
    max_leaves=4,
)


@pytest.mark.parametrize("axis", [CENTS, WHOLE], ids=["cents", "whole"])
@settings(deadline=None)
@given(FORMULAS)
def test_values_are_those_of_fractions(axis: Axis, formula: Formula) -> None:
    polynomial = polynomial_of(scalar(formula[0]), axis)
    assert polynomial is not None
    found = on_levels(polynomial, axis)
    assert found is not None
    values, unit = found
    assert values[-1] == 0, "NULL"
    assert [int(value) * unit for value in values[:-1]] == [formula[1](x) for x in levels(axis)]


@pytest.mark.parametrize("text", ["x / 2", "x * x / 3", "CAST(x AS INT)", "x % 2", "SQRT(x)"])
def test_what_truncates_or_rounds_is_none(text: str) -> None:
    assert polynomial_of(scalar(text), WHOLE) is None


@pytest.mark.parametrize(
    "text", ["x * x * x * x * x", "x / 0.0", "CAST(x AS DECIMAL(3, 1))", "CAST('a' AS DOUBLE)"]
)
def test_what_is_beyond_it_is_none(text: str) -> None:
    assert polynomial_of(scalar(text), CENTS) is None


def test_numbers_beyond_64_bits_are_left_to_the_database() -> None:
    polynomial = polynomial_of(scalar("x * 1e30"), CENTS)
    assert polynomial is not None
    assert on_levels(polynomial, CENTS) is None


def test_bins_have_no_exact_levels() -> None:
    assert exact_levels(NumericAxis(name="x", edges=(0.0, 1.0, 2.0))) is None


@pytest.mark.parametrize(
    ("axis", "stored"),
    [
        (CENTS, "DECIMAL(3, 2)"),
        (WHOLE, "BIGINT"),
        (MeasureAxis(name="x", low=0, high=1000, step=Fraction(1, 8)), "DECIMAL(7, 3)"),
        (MeasureAxis(name="x", low=0, high=1, step=Fraction(1, 3)), "DOUBLE"),
        (MeasureAxis(name="x", low=2**39, high=2**39 + 1, step=Fraction(1, 1024)), "DOUBLE"),
    ],
)
def test_decimals_are_stored_as_decimals(axis: Axis, stored: str) -> None:
    assert stored_type(axis) == stored


def test_a_level_is_told_from_what_lies_between() -> None:
    assert [is_level(CENTS, Fraction(text)) for text in ("-0.5", "1.99", "2.01", "1.995")] == [
        True,
        True,
        False,
        False,
    ]
    assert [is_level(WHOLE, Fraction(number)) for number in (9, 99, 10)] == [True, True, False]
    found = exact_levels(CENTS)
    assert found is not None
    assert np.flatnonzero(found.null).tolist() == [251]
