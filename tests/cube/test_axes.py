import datetime as dt
from collections.abc import Callable

import pytest

from cube.axis import Axis, BooleanAxis, CategoryAxis, DateAxis, IntegerAxis, NumericAxis
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
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused(declare: Callable[[], Axis]) -> None:
    with pytest.raises(ValueError, match=r"."):
        declare()


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
