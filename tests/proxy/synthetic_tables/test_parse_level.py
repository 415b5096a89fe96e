"""Values as text: every level is found again by what SQL shows of it, and nothing else is."""

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
from cube.refusals import InvalidRequest
from proxy.cli.shared.rendering import general
from proxy.synthetic_tables.conditional_law import level_place

AXES: list[Axis] = [
    CategoryAxis(name="job", values=("baker", "NULL", "a=b "), other="another", null=True),
    BooleanAxis(name="senior", null=True),
    IntegerAxis(name="age", low=-2, high=30, other=99, null=True),
    NumericAxis(name="pay", edges=(0.0, 10.0, 99.5), other=-1.0, null=True),
    DateAxis(name="since", low=dt.date(2020, 2, 28), high=dt.date(2020, 3, 2), null=True),
    TimestampAxis(
        name="at",
        low=dt.datetime(2024, 2, 28, 22),  # noqa: DTZ001 - levels have no zone
        high=dt.datetime(2024, 2, 29, 1),  # noqa: DTZ001
        step="hour",
        null=True,
    ),
    MeasureAxis(name="hours", low=0, high=4, step=Fraction(1, 2)),
]


@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.name)
def test_a_level_is_found_by_the_text_that_shows_it(axis: Axis) -> None:
    places = [level_place(axis, general(level)) for level in axis.levels]
    expected = list(range(axis.size))
    if axis.name == "job":
        expected[-1] = 1  # there NULL is a word
    assert places == expected


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("senior", "TRUE", 1),
        ("senior", "Null", 2),
        ("age", "3.0", 5),
        ("pay", "9.999", 0),
        ("pay", "10", 1),
        ("pay", "99.5", 1),
        ("pay", "-1", 2),
        ("hours", "0.50", 1),
    ],
)
def test_other_ways_to_write_it_mean_it_too(name: str, text: str, place: int) -> None:
    (axis,) = (axis for axis in AXES if axis.name == name)
    assert level_place(axis, text) == place


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("job", "Baker"),
        ("senior", "1"),
        ("age", "31"),
        ("age", "old"),
        ("age", "nan"),
        ("age", ""),
        ("pay", "99.6"),
        ("pay", "nan"),
        ("pay", "inf"),
        ("since", "2020-02-30"),
        ("since", "today"),
        ("hours", "0.25"),
        ("hours", "NULL"),
    ],
)
def test_what_is_no_level_is_refused_with_those_that_are(name: str, text: str) -> None:
    (axis,) = (axis for axis in AXES if axis.name == name)
    with pytest.raises(InvalidRequest, match=f"{name} has no level") as caught:
        level_place(axis, text)
    assert caught.value.hint
