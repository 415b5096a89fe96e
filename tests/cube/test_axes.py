import datetime as dt
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.axis import (
    Axis,
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    MeasureAxis,
    NumericAxis,
)
from cube.measurement import Weight
from cube.refusals import InvalidTarget
from cube.schema import Schema
from cube.target import AccuracyTarget


def test_other_and_null_come_after_the_regular_levels() -> None:
    axis = CategoryAxis(name="race", values=("White", "Black"), other="Other", null=True)
    assert axis.levels == ("White", "Black", "Other", None)
    assert axis.other_position == 2
    assert axis.null_position == 3


def test_every_kind_lists_its_levels() -> None:
    assert IntegerAxis(name="age", low=17, high=19).levels == (17, 18, 19)
    assert BooleanAxis(name="member").levels == (False, True)
    assert NumericAxis(name="pay", edges=(0.0, 10.0, 20.0)).levels == (0.0, 10.0)
    days = DateAxis(name="day", low=dt.date(2024, 2, 28), high=dt.date(2024, 3, 1)).levels
    assert days == (dt.date(2024, 2, 28), dt.date(2024, 2, 29), dt.date(2024, 3, 1))


@pytest.mark.parametrize(
    "declare",
    [
        lambda: CategoryAxis(name="", values=("a",)),
        lambda: CategoryAxis(name="x", values=()),
        lambda: CategoryAxis(name="x", values=("a", "a")),
        lambda: CategoryAxis(name="x", values=("a",), other="a"),
        lambda: IntegerAxis(name="x", low=3, high=2),
        lambda: IntegerAxis(name="x", low=0, high=2**21),
        lambda: IntegerAxis(name="x", low=0, high=5, other=3),
        lambda: NumericAxis(name="x", edges=(1.0,)),
        lambda: NumericAxis(name="x", edges=(1.0, 1.0)),
        lambda: NumericAxis(name="x", edges=(0.0, float("inf"))),
        lambda: NumericAxis(name="x", edges=(0.0, 1.0), other=0.5),
        lambda: BooleanAxis(name="x", other=True),
        lambda: DateAxis(name="x", low=dt.date(2024, 2, 2), high=dt.date(2024, 2, 1)),
        lambda: DateAxis(name="x", low=dt.datetime(2024, 2, 2), high=dt.date(2024, 3, 1)),  # noqa: DTZ001 - what the check is for
        lambda: MeasureAxis(name="x", low=1, high=1, step=1),
        lambda: MeasureAxis(name="x", low=0, high=1, step=0),
        lambda: MeasureAxis(name="x", low=0, high=1, step=-1),
        lambda: MeasureAxis(name="x", low=0, high=10, step=3),
        lambda: MeasureAxis(name="x", low=0, high=2**20, step=1),
        lambda: MeasureAxis(name="x", low=0, high=2**20 - 1, step=1, null=True),
        lambda: MeasureAxis(name="x", low=2**40, high=2**40 + 1, step=1),
        lambda: MeasureAxis(name="x", low=0, high=9, step=1, other=-1),
        lambda: MeasureAxis(name="x", low=1, high=1 + Fraction(1, 2**51), step=Fraction(1, 2**51)),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused(declare: Callable[[], Axis]) -> None:
    with pytest.raises(ValueError, match=r"."):
        declare()


@pytest.mark.parametrize("field", ["low", "high", "step"])
@pytest.mark.parametrize("value", [0.5, True, "1"])
def test_a_measure_is_declared_exactly(field: str, value: object) -> None:
    declared: dict[str, object] = {"low": 0, "high": 1, "step": 1, field: value}
    with pytest.raises(TypeError, match=f"x: {field} must be exact"):
        MeasureAxis(name="x", **declared)  # type: ignore[arg-type] # what the check is for


def test_one_measure_has_one_form() -> None:
    """The ledger knows an axis by its repr."""
    whole = MeasureAxis(name="x", low=0, high=1, step=1)
    fractions = MeasureAxis(name="x", low=Fraction(0), high=Fraction(1), step=Fraction(1))
    assert whole == fractions
    assert repr(whole) == repr(fractions)


def test_the_levels_of_a_measure_are_as_whole_as_its_declaration() -> None:
    whole = MeasureAxis(name="x", low=-10, high=20, step=10, null=True)
    assert whole.levels == (-10, 0, 10, 20, None)
    assert all(type(level) is int for level in whole.regular)
    assert (whole.sql_type, whole.middle) == ("BIGINT", Fraction(5))
    assert whole.null_position == 4
    tenths = MeasureAxis(name="x", low=0, high=Fraction(3, 10), step=Fraction(1, 10))
    assert tenths.levels == (0.0, 0.1, 0.2, 0.3)
    assert all(type(level) is float for level in tenths.regular)
    assert (tenths.sql_type, tenths.middle) == ("DOUBLE", Fraction(3, 20))
    assert MeasureAxis(name="x", low=Fraction(1, 2), high=Fraction(5, 2), step=1).levels[0] == 0.5


@given(
    low=st.fractions(-(10**6), 10**6, max_denominator=1000),
    step=st.fractions(Fraction(1, 1000), 100, max_denominator=1000),
    n_steps=st.integers(1, 50),
)
def test_levels_and_rounding_points_are_the_nearest_doubles(
    low: Fraction, step: Fraction, n_steps: int
) -> None:
    axis = MeasureAxis(name="x", low=low, high=low + n_steps * step, step=step)
    exact = [low + k * step for k in range(n_steps + 1)]
    assert list(axis.regular) == [float(level) for level in exact]
    points = [float(level - step / 2) for level in exact[1:]]
    assert list(axis.rounding_points) == points
    assert all(a < b for a, b in pairwise(points))
    assert axis.middle == (exact[0] + exact[-1]) / 2


def test_the_widest_measure_has_distinct_levels() -> None:
    finest = Fraction(2**40, 2**50)
    axis = MeasureAxis(name="x", low=2**40 - finest * 1000, high=2**40, step=finest)
    assert len(set(axis.regular)) == axis.size
    assert len(set(axis.rounding_points)) == axis.size - 1


@pytest.mark.parametrize("unit", ["", "x" * 64, "a\n", "A"])
def test_a_unit_is_a_column_that_is_not_an_axis(unit: str) -> None:
    axes = (BooleanAxis(name="a"),)
    assert Schema(table="t", axes=axes, n_records_max=10).unit is None
    assert Schema(table="t", axes=axes, n_records_max=10, unit="person").unit == "person"
    with pytest.raises(ValueError, match="unit"):
        Schema(table="t", axes=axes, n_records_max=10, unit=unit)


def test_two_columns_may_not_differ_by_letter_case_only() -> None:
    with pytest.raises(ValueError, match="share a name"):
        Schema(table="t", axes=(BooleanAxis(name="A"), BooleanAxis(name="a")), n_records_max=10)


def test_a_wide_table_counts_its_cells_exactly() -> None:
    axes = tuple(IntegerAxis(name=f"c{place}", low=0, high=999) for place in range(30))
    schema = Schema(table="wide", axes=axes, n_records_max=10)
    assert schema.n_cells(tuple(schema.by_name)) == 10**90


@pytest.mark.parametrize("half_width", [0.0, -1.0, float("nan"), float("inf")])
def test_a_half_width_is_a_positive_number(half_width: float) -> None:
    with pytest.raises(InvalidTarget):
        AccuracyTarget(half_width=half_width, confidence=0.95)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, 1.1, float("nan")])
def test_a_confidence_lies_strictly_between_0_and_1(confidence: float) -> None:
    with pytest.raises(InvalidTarget):
        AccuracyTarget(half_width=1.0, confidence=confidence)


def test_a_weight_is_rounded_towards_more_cost() -> None:
    assert Weight.at_least(0.3).exact >= 0.3
    assert Weight.at_least(2.0**-60).units == 1
    with pytest.raises(ValueError, match="units"):
        Weight.at_least(1e9)
