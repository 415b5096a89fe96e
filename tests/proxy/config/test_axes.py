"""Columns in the configuration file: each becomes its axis, or a problem."""

import datetime as dt
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.axis import (
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    MeasureAxis,
    NumericAxis,
    TimestampAxis,
)
from cube.refusals import ConfigurationInvalid
from proxy.config.columns import LevelFiles, read_axis
from proxy.sources.problems import Problems
from tests.support.config_files import GOOD, loaded, problems, write_people

ALL_KINDS = """
[tables.people.columns.city]
kind = "category"
levels = ["Oslo", "Rome"]
other = "elsewhere"
null = true
[tables.people.columns.income]
kind = "numeric"
edges = [0, 1.5, 10]
other = -1
[tables.people.columns."is member"]
kind = "boolean"
null = true
[tables.people.columns.born]
kind = "date"
low = 1900-01-01
high = 2020-12-31
other = 1800-01-01
[tables.people.columns.seen]
kind = "timestamp"
low = 2024-01-01
high = 2024-01-31
step = "minute"
null = true
[tables.people.columns.left]
kind = "timestamp"
low = 2024-01-01T06:00:00
high = 2024-01-01T22:00:00
step = "hour"
time_zone = "Europe/Oslo"
other = 1970-01-01T00:00:00
[tables.people.columns.pay]
kind = "measure"
low = -0.5
high = 1e3
step = 0.1
null = true
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_people(tmp_path)


def test_every_kind_of_column_becomes_its_axis(folder: Path) -> None:
    (table,) = loaded(folder, GOOD + ALL_KINDS).tables
    assert table.schema.axes == (
        IntegerAxis(name="age", low=0, high=120),
        CategoryAxis(name="city", values=("Oslo", "Rome"), other="elsewhere", null=True),
        NumericAxis(name="income", edges=(0.0, 1.5, 10.0), other=-1.0),
        BooleanAxis(name="is member", null=True),
        DateAxis(
            name="born",
            low=dt.date(1900, 1, 1),
            high=dt.date(2020, 12, 31),
            other=dt.date(1800, 1, 1),
        ),
        TimestampAxis(
            name="seen",
            low=dt.datetime(2024, 1, 1),  # noqa: DTZ001 - levels have no zone
            high=dt.datetime(2024, 1, 31, 23, 59),  # noqa: DTZ001
            step="minute",
            null=True,
        ),
        TimestampAxis(
            name="left",
            low=dt.datetime(2024, 1, 1, 6),  # noqa: DTZ001
            high=dt.datetime(2024, 1, 1, 22),  # noqa: DTZ001
            step="hour",
            time_zone="Europe/Oslo",
            other=dt.datetime(1970, 1, 1),  # noqa: DTZ001
        ),
        MeasureAxis(name="pay", low=Fraction(-1, 2), high=1000, step=Fraction(1, 10), null=True),
    )


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ('low = 2024-01-01\nhigh = 2024-02-01\nstep = "second"', "'minute', 'hour' or 'day'"),
        ('low = 2024-01-01\nhigh = 2024-02-01T00:30:00\nstep = "hour"', "begins at 2024-02-01"),
        ('low = 2024-01-01\nhigh = 2024-02-01T00:00:00Z\nstep = "hour"', "without an offset"),
        ('low = 2020-01-01\nhigh = 2024-01-01\nstep = "minute"', "1 to 1048576 are allowed"),
        (
            'low = 2024-01-01\nhigh = 2024-02-01\nstep = "hour"\ntime_zone = "Europe/Atlantis"',
            "not a time zone",
        ),
    ],
)
def test_timestamps_that_make_no_sense_are_problems(folder: Path, lines: str, what: str) -> None:
    text = GOOD + f'[tables.people.columns.at]\nkind = "timestamp"\n{lines}\n'
    assert what in problems(folder, text)[0]


def test_columns_may_not_share_a_name(folder: Path) -> None:
    text = GOOD + '[tables.people.columns.AGE]\nkind = "boolean"\n'
    assert "two columns share a name" in problems(folder, text)[0]


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.dates()),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(
                st.one_of(
                    st.sampled_from(
                        [
                            "kind",
                            "low",
                            "high",
                            "step",
                            "levels",
                            "edges",
                            "other",
                            "null",
                            "columns",
                        ]
                    ),
                    st.text(max_size=3),
                ),
                inner,
                max_size=4,
            ),
        ),
        max_leaves=8,
    ),
    st.sampled_from(
        ["category", "integer", "numeric", "boolean", "date", "measure", "timestamp", None]
    ),
)
def test_any_value_in_a_column_is_an_axis_or_a_problem(value: Any, kind: str | None) -> None:
    if isinstance(value, dict) and kind is not None:
        value["kind"] = kind
    found = Problems(Path("x"))
    axis = read_axis("column", value, ("columns", "column"), found, LevelFiles(Path()))
    if axis is None:
        with pytest.raises(ConfigurationInvalid):
            found.raise_if_any()
    else:
        assert axis.size >= 1


@pytest.mark.parametrize("key", ["low", "high", "step"])
def test_a_number_that_is_none_is_one_problem(key: str, tmp_path: Path) -> None:
    write_people(tmp_path)
    pay = {"low": "0", "high": "100", "step": "1"} | {key: '"1"'}
    text = "".join(f"{name} = {value}\n" for name, value in pay.items())
    declared = f'{GOOD}\n[tables.people.columns.pay]\nkind = "measure"\n{text}'
    assert problems(tmp_path, declared) == [f"tables.people.columns.pay.{key}: should be a number"]
