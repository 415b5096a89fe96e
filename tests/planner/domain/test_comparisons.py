"""Comparisons worked out here against the database's own answers, NULL by NULL."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from cube.axis import DIGITS_MAX, CategoryAxis, IntegerAxis, MeasureAxis, NumericAxis
from cube.schema import Schema
from planner.domain.scratchpad import Probes, Scratchpad
from planner.sql.query_tree import parse
from planner.sql.statements import Query
from tests.support.examples import examples

# In the order of UTF-8, of UTF-16 and of the alphabet these stand differently.
TEXTS = (
    "Z",
    "a",
    "",
    "é",
    "e\u0301",
    "\uffee",
    "\U0001f600",
    "a b",
    "ab",
    "A",
    "10",
    "9",
    "ﬀ",
    "ß",
)
SCHEMA = Schema(
    table="t",
    axes=(
        IntegerAxis(name="n", low=-3, high=12, other=-(10**11), null=True),
        CategoryAxis(name="s", values=TEXTS, other="elsewhere", null=True),
        NumericAxis(name="d", edges=(0.0, 1.0, 2.5, 1e15), null=True),
        MeasureAxis(name="m", low=-1, high=1, step=Fraction(1, 100), null=True),
    ),
    n_records_max=10,
)
SCRATCHPAD = Scratchpad({"t": SCHEMA})
PROBES: Probes = {"d": (None, 0.0, -0.0, 1.0, math.nextafter(1.0, 0), 2.5, 9e14, 1e15, 3.0)}

wholes = st.one_of(st.integers(-5, 14), st.sampled_from([-(10**11), 10**12, 10**15 - 1])).map(str)
decimals = st.one_of(
    wholes,
    st.integers(-1200, 1200).map(lambda thousandths: f"{thousandths / 1000:.3f}"),
    st.sampled_from(["0.07", "-0.29", "0.290", "0.2900000000001", "12345678901.2345"]),
)
texts = st.one_of(st.sampled_from(TEXTS), st.sampled_from(["elsewhere", "zz", "\U0001f601"])).map(
    lambda text: f"'{text}'"
)
orderings = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    column, constants = draw(
        st.sampled_from([("n", decimals), ("s", texts), ("d", wholes), ("m", decimals)])
    )
    match draw(st.sampled_from(["ordering", "turned", "between", "in"])):
        case "ordering":
            return f"{column} {draw(orderings)} {draw(constants)}"
        case "turned":
            return f"{draw(constants)} {draw(orderings)} {column}"
        case "between":
            return f"{column} BETWEEN {draw(constants)} AND {draw(constants)}"
        case _:
            listed = draw(st.lists(constants, min_size=1, max_size=4))
            return f"{column} IN ({', '.join(listed)})"


def condition(sql: str) -> exp.Expr:
    found: exp.Expr = parse(Query(f"SELECT {sql}")).tree.selects[0]
    return found


def probes_of(expression: exp.Expr) -> Probes:
    names = {column.name for column in expression.find_all(exp.Column)}
    return {name: PROBES[name] for name in PROBES.keys() & names}


@settings(deadline=None, max_examples=examples(400))
@given(comparisons())
def test_a_plain_comparison_is_what_the_database_makes_of_it(sql: str) -> None:
    expression = condition(sql)
    probes = probes_of(expression)
    here = SCRATCHPAD._compared(expression, "t", probes)
    assert here is not None
    # Between parentheses it is left to the database.
    there = SCRATCHPAD.evaluate(exp.paren(expression), table="t", probes=probes)
    assert (here.axes, here.sql_type) == (there.axes, there.sql_type)
    assert here.null.tolist() == there.null.tolist()
    assert here.values[~here.null].tolist() == there.values.astype(bool)[~there.null].tolist()


@pytest.mark.parametrize(
    "sql",
    [
        *("n = '1'", "n > 1e3", "n = 1 + 1", "n IN (1, '2')", "n = NULL", "n <> TRUE"),
        *(
            "s = 1",
            "s LIKE 'a'",
            "s = 'it''s'",
            "s < s",
            "s || 'a' = 'ab'",
            "s IS NULL",
            "NOT n = 1",
        ),
        *("n IN (1, NULL)", "n = 1 OR n = 2", "n = 007", r"s = 'a\b'", "s = 'a\n'"),
        *("d = 2.5", "d > 0.1", f"n < 1{'0' * DIGITS_MAX}", "n + 0 = 1", "1 = 1", "-n = 1"),
    ],
)
def test_whatever_else_is_left_to_the_database(sql: str) -> None:
    expression = condition(sql)
    assert SCRATCHPAD._compared(expression, "t", probes_of(expression)) is None


def test_a_level_beyond_64_bits_is_left_to_the_database() -> None:
    axis = IntegerAxis(name="n", low=0, high=3, other=2**70)
    scratchpad = Scratchpad({"t": Schema(table="t", axes=(axis,), n_records_max=10)})
    assert scratchpad._compared(condition("n = 1"), "t", {}) is None
