"""Declarations of columns as JSON, written and read back."""

import datetime as dt
import json
from fractions import Fraction

import pytest

from cube.axis import (
    Axis,
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    MeasureAxis,
    NumericAxis,
    TimestampAxis,
)
from cube.encoding import axis_declared, declared_column

NOON = dt.datetime(2026, 1, 1, 12)  # noqa: DTZ001 - of the column's own time
AXES: tuple[Axis, ...] = (
    CategoryAxis(name="city", values=("Oslo", "", "NULL"), other="else", null=True),
    BooleanAxis(name="member", null=True),
    NumericAxis(name="hours", edges=(0.1, 1 / 3, 7e22), other=-1.0),
    IntegerAxis(name="age", low=-3, high=9, other=99),
    DateAxis(name="day", low=dt.date(2026, 1, 1), high=dt.date(2026, 2, 1), null=True),
    DateAxis(name="d", low=dt.date(1, 1, 1), high=dt.date(1, 1, 2), other=dt.date(9999, 12, 31)),
    TimestampAxis(name="at", low=NOON, high=NOON + dt.timedelta(hours=3), step="hour"),
    TimestampAxis(
        name="zoned",
        low=NOON.replace(hour=0),
        high=NOON.replace(day=4, hour=0),
        step="day",
        time_zone="Europe/Oslo",
    ),
)


@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.name)
def test_a_column_is_read_as_it_was_declared(axis: Axis) -> None:
    found = axis_declared(json.loads(json.dumps(declared_column(axis))))
    assert found == axis
    assert found.levels == axis.levels


@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.name)
def test_a_declaration_with_another_number_of_levels_is_refused(axis: Axis) -> None:
    with pytest.raises(ValueError, match="levels, not"):
        axis_declared(declared_column(axis) | {"size": axis.size + 1})


def test_a_measure_has_no_levels_to_draw() -> None:
    measure = MeasureAxis(name="wage", low=0, high=10, step=Fraction(1, 2))
    with pytest.raises(ValueError, match="no levels"):
        axis_declared(declared_column(measure))
