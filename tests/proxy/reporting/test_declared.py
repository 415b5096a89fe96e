"""Names of levels, against the axes they were declared from."""

import datetime as dt
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
from cube.encoding import declare
from cube.schema import Schema
from proxy.reporting.declared import DeclaredTable

AXES: tuple[Axis, ...] = (
    CategoryAxis(name="city", values=("Oslo", "Rome"), other="else", null=True),
    IntegerAxis(name="age", low=-2, high=5, null=True),
    BooleanAxis(name="member"),
    DateAxis(name="since", low=dt.date(2024, 2, 28), high=dt.date(2024, 3, 1)),
    TimestampAxis(
        name="at",
        low=dt.datetime(2024, 2, 28, 22),  # noqa: DTZ001 - levels have no zone
        high=dt.datetime(2024, 2, 29, 1),  # noqa: DTZ001
        step="hour",
        null=True,
    ),
)


def declared(*axes: Axis) -> DeclaredTable:
    schema = Schema(table="t", axes=axes, n_records_max=10)
    return DeclaredTable.parse(declare(schema, version="1.2.3"))


def plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.name)
def test_a_level_is_named_as_sql_would_write_it(axis: Axis) -> None:
    [column] = declared(axis).columns
    assert column.n_levels == axis.size
    names = [column.level(position) for position in range(axis.size)]
    assert names[: len(axis.regular)] == [plain(value) for value in axis.regular]
    if axis.other_position is not None:
        assert names[axis.other_position] == f"other ({axis.other})"
    if axis.null_position is not None:
        assert names[axis.null_position] == "NULL"


def test_bins_are_named_by_their_edges_and_measures_by_their_values() -> None:
    numeric = NumericAxis(name="x", edges=(0, 0.5, 1000), other=-1.0)
    measure = MeasureAxis(name="y", low=0, high=1, step=Fraction(1, 4))
    bins, values = declared(numeric, measure).columns
    assert [bins.level(place) for place in range(3)] == ["0 to 0.5", "0.5 to 1000", "other (-1.0)"]
    assert [values.level(place) for place in range(5)] == ["0", "0.25", "0.5", "0.75", "1"]


def test_several_levels_are_named_by_their_ends() -> None:
    [column] = declared(AXES[1]).columns
    assert column.levels(0, 1) == "-2"
    assert column.levels(1, 4) == "-1 … 1"


def test_a_column_of_another_size_is_not_the_declared_one() -> None:
    table = declared(*AXES)
    assert table.column("age", 9) is not None
    assert table.column("age", 10) is None
    assert table.column("gone", 9) is None
