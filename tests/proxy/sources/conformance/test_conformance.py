"""Level semantics are the same in every place: files, PostgreSQL and Spark give equal cells.

The oracle is plain Python (oracle.py). Each kind of axis meets values chosen for their edges, then
values that hypothesis chooses.
"""

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accountant.grouping import Grouping
from accountant.source import CellCounts, Source
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
from cube.schema import Schema
from tests.proxy.sources.conformance.oracle import cells
from tests.proxy.sources.conformance.places import Files, Place, Rows
from tests.proxy.sources.conformance.places import place as place  # noqa: PLC0414 - a fixture
from tests.support.examples import examples
from tests.support.groupings import each

UTC = dt.UTC
OSLO = "Europe/Oslo"
POST_CODES = tuple(f"{code:04}" for code in range(300))
TEXTS = (
    "a",
    "a ",
    " a",
    "A",
    "é",
    "e\u0301",
    "it's",
    'a "b"',
    "back\\slash",
    "{,}",
    "ﬁ",
    "\U0001f600",
)
UP, DOWN = math.inf, -math.inf


def wall(*parts: int) -> dt.datetime:
    """A time on the wall, as levels are."""
    return dt.datetime(*parts)  # type: ignore[arg-type] # noqa: DTZ001


def utc(*parts: int) -> dt.datetime:
    """A moment."""
    return wall(*parts).replace(tzinfo=UTC)


# Every axis with the values that it meets, and the types of its column in Arrow and PostgreSQL.
AXES: dict[str, tuple[Axis, Sequence[Any], pa.DataType, str]] = {
    "text": (
        CategoryAxis(name="text", values=TEXTS, other="?", null=True),
        [*TEXTS, "a  ", "Á", "fi", "x", "line\nend", "$1", "%s", None],
        pa.string(),
        "text",
    ),
    "code": (
        CategoryAxis(name="code", values=POST_CODES, other="none"),
        ["0000", "0001", "0299", "0300", "1", " 0001", None],
        pa.string(),
        "varchar(8)",
    ),
    "whole": (
        IntegerAxis(name="whole", low=-3, high=4, null=True, other=99),
        [-(2**63), -4, -3, 0, 4, 5, 99, 2**63 - 1, None],
        pa.int64(),
        "bigint",
    ),
    "whole_real": (
        IntegerAxis(name="whole_real", low=-3, high=4, other=99),
        [-3.0, -0.0, 0.0, 4.0, 5.0, 1e300, -1e300, 2.0**53, UP, DOWN, math.nan, None],
        pa.float64(),
        "double precision",
    ),
    "bins": (
        NumericAxis(name="bins", edges=(-1.0, 0.0, 0.1, 0.3, 1e300), null=True, other=-5.0),
        [
            *(-1.0, -0.0, 0.0, 5e-324, -5e-324, 0.1, 0.3, 0.1 + 0.2, 1e300, 1.7e308),
            *(math.nextafter(0.1, 0), math.nextafter(0.3, 1), math.nextafter(1e300, UP)),
            *(math.nextafter(-1, -2), UP, DOWN, math.nan, None),
        ],
        pa.float64(),
        "double precision",
    ),
    "real": (
        NumericAxis(name="real", edges=(0.0, 0.1, 0.5, 1.0), other=-1.0),
        [float(np.float32(value)) for value in (0.0, 0.1, 0.5, 0.75, 1.0, 1.5)] + [None],
        pa.float32(),
        "real",
    ),
    "many_bins": (
        NumericAxis(name="many_bins", edges=tuple(edge / 10 for edge in range(101)), other=-1.0),
        [0.0, 0.1, 0.3, 0.7, 3.3, 9.9, 10.0, 10.1, math.nextafter(3.3, 0), None],
        pa.float64(),
        "double precision",
    ),
    "decimal_bins": (
        NumericAxis(name="decimal_bins", edges=(0.1, 0.3, 0.3001, 5.55), other=-1.0, null=True),
        [Decimal(value) for value in ("0.1000", "0.0999", "0.3", "0.3001", "5.55", "5.5501", "-7")]
        + [None],
        pa.decimal128(12, 4),
        "numeric(12,4)",
    ),
    "measure": (
        MeasureAxis(name="measure", low=0, high=10, step=Fraction(1, 2), null=True),
        [
            *(-0.0, 0.25, math.nextafter(0.25, 0), 9.75, math.nextafter(9.75, 0), 5e-324),
            *(-5e-324, 1e308, -1e308, 3.3, UP, DOWN, math.nan, None),
        ],
        pa.float64(),
        "double precision",
    ),
    "cents": (
        MeasureAxis(name="cents", low=-5, high=5, step=Fraction(1, 100), null=True),
        [0.005, -0.005, 0.015, math.nextafter(0.015, 0), 4.995, 7.0, -7.0, 1e-300, 2.675, None],
        pa.float64(),
        "double precision",
    ),
    "whole_measure": (
        MeasureAxis(name="whole_measure", low=0, high=1000, step=10, null=True),
        [-(2**31), 0, 4, 5, 14, 15, 995, 1000, 2**31 - 1, None],
        pa.int32(),
        "integer",
    ),
    "decimal_measure": (
        MeasureAxis(name="decimal_measure", low=-2, high=2, step=Fraction(1, 10), null=True),
        [Decimal(value) for value in ("0.05", "0.04", "-0.05", "-0.06", "1.95", "77.77", "-77.77")]
        + [None],
        pa.decimal128(10, 2),
        "numeric(10,2)",
    ),
    "truth": (BooleanAxis(name="truth", null=True), [True, False, None], pa.bool_(), "boolean"),
    "day": (
        DateAxis(
            name="day", low=dt.date(1969, 12, 30), high=dt.date(2024, 3, 1), other=dt.date(1, 1, 1)
        ),
        [
            *(dt.date(1969, 12, 29), dt.date(1969, 12, 30), dt.date(1970, 1, 1)),
            *(
                dt.date(2024, 2, 29),
                dt.date(2024, 3, 1),
                dt.date(2024, 3, 2),
                dt.date(9999, 12, 31),
            ),
            None,
        ],
        pa.date32(),
        "date",
    ),
    "wall": (
        TimestampAxis(
            name="wall",
            low=wall(1969, 12, 31),
            high=wall(1970, 1, 2),
            step="day",
            null=True,
            other=wall(1, 1, 1),
        ),
        [
            *(wall(1969, 12, 30, 23, 59, 59, 999999), wall(1969, 12, 31)),
            *(wall(1969, 12, 31, 23, 59, 59, 999999), wall(1970, 1, 2, 23, 59)),
            *(wall(1970, 1, 3), wall(9999, 12, 31, 23), None),
        ],
        pa.timestamp("us"),
        "timestamp",
    ),
    "moment": (
        TimestampAxis(
            name="moment",
            low=wall(2024, 3, 30),
            high=wall(2024, 10, 28, 23),
            step="hour",
            time_zone=OSLO,
            null=True,
            other=wall(1, 1, 1),
        ),
        [
            # The hour that is left out in March, and the one that comes twice in October.
            *(
                utc(2024, 3, 31, 0, 59, 59, 999999),
                utc(2024, 3, 31, 1),
            ),
            *(utc(2024, 10, 27, hour, 30) for hour in (0, 1, 2)),
            *(
                utc(2024, 3, 29, 22, 59, 59),
                utc(2024, 3, 29, 23),
            ),
            *(
                utc(2024, 10, 28, 22, 59),
                utc(2024, 10, 28, 23),
            ),
            None,
        ],
        pa.timestamp("us", tz="UTC"),
        "timestamptz",
    ),
    "minute": (
        TimestampAxis(
            name="minute",
            low=wall(2024, 2, 29),
            high=wall(2024, 3, 1, 23, 59),
            step="minute",
            other=wall(1, 1, 1),
        ),
        [
            *(wall(2024, 2, 28, 23, 59, 59), wall(2024, 2, 29, 0, 0, 59, 999999)),
            *(wall(2024, 2, 29, 23, 59), wall(2024, 3, 1), wall(2024, 3, 2)),
            None,
        ],
        pa.timestamp("us"),
        "timestamp",
    ),
}


def found(counts: CellCounts) -> dict[tuple[int, ...], int]:
    """Cells as the oracle has them."""
    levels = [array.tolist() for array in counts.levels]
    return {tuple(cell): n for *cell, n in zip(*levels, counts.counts.tolist(), strict=True)}


def made(names: Sequence[str], values: dict[str, list[Any]]) -> tuple[Schema, Rows]:
    """A table with some of the axes."""
    axes = tuple(AXES[name][0] for name in names)
    arrays = {name: pa.array(values[name], AXES[name][2]) for name in names}
    schema = Schema(table="t", axes=axes, n_records_max=10**6)
    return schema, Rows(pa.table(arrays), {name: AXES[name][3] for name in names})


def check(source: Source, schema: Schema, rows: Rows, *scopes: tuple[str, ...]) -> None:
    for scope in scopes:
        expected = cells(schema.axes, rows.table.to_pylist(), scope)
        assert found(source.measure(each(schema, *scope))) == expected, scope


@pytest.mark.parametrize("name", AXES)
def test_every_value_has_the_level_that_the_oracle_says(place: Place, name: str) -> None:
    values = list(AXES[name][1]) * 2
    if name == "whole_real" and isinstance(place, Files) and place.suffix == ".csv":
        # A field is read as what it says: `nan` is no whole number, and neither is `1e+300`.
        values = [value for value in values if value is None or abs(value) < 1e15]
    schema, rows = made([name], {name: values})
    check(place.source(schema, rows), schema, rows, (name,), ())


def test_rows_with_a_value_without_a_level_are_left_out_of_every_scope(place: Place) -> None:
    """Of axes that are not asked for, too: by a list, by a join, and by arithmetic."""
    axes = (
        CategoryAxis(name="text", values=("a", "b")),
        CategoryAxis(name="code", values=POST_CODES),
        NumericAxis(name="bins", edges=(0.0, 1.0)),
        BooleanAxis(name="truth"),
    )
    schema = Schema(table="t", axes=axes, n_records_max=100)
    table = pa.table(
        {
            "text": pa.array(["a", "b", "c", "a", "b", None], pa.string()),
            "code": pa.array(["0001", "x", "0002", "0001", "0299", "0001"], pa.string()),
            "bins": pa.array([0.5, 0.5, 0.5, 2.0, 1.0, 0.5]),
            "truth": pa.array([True, True, True, True, False, None], pa.bool_()),
        }
    )
    rows = Rows(table, {"text": "text", "code": "text", "bins": "float8", "truth": "boolean"})
    scopes = [(), ("text",), ("code",), ("text", "truth"), ("bins", "code", "text", "truth")]
    check(place.source(schema, rows), schema, rows, *scopes)


def test_an_empty_table_has_no_cells(place: Place) -> None:
    schema, rows = made(["text", "bins"], {"text": [], "bins": []})
    check(place.source(schema, rows), schema, rows, (), ("text",), ("bins", "text"))


DOUBLES = st.floats(allow_nan=True, allow_infinity=True, width=64)
NEAR = st.sampled_from([0.0, 0.1, 0.25, 0.3, 9.75, 0.005, 0.015, 1e300, -1.0]).flatmap(
    lambda edge: st.sampled_from(
        [edge, -edge, math.nextafter(edge, UP), math.nextafter(edge, DOWN)]
    )
)
INSTANTS = st.datetimes(wall(2024, 3, 29), wall(2024, 10, 30)).map(
    lambda moment: moment.replace(tzinfo=UTC)
)
# What no database takes: a lone surrogate and the character 0; a CSV file has no empty text.
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r")
DRAWN = {
    "text": st.sampled_from(TEXTS) | st.text(CHARACTERS, min_size=1, max_size=6),
    "whole": st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 6),
    "bins": DOUBLES | NEAR,
    "measure": DOUBLES | NEAR | st.floats(-1, 11),
    "cents": NEAR | st.floats(-6, 6),
    "decimal_bins": st.decimals(-1, 6, places=4),
    "decimal_measure": st.decimals(-3, 3, places=2),
    "day": st.dates(),
    "wall": st.datetimes(wall(1969, 12, 30), wall(1970, 1, 4)),
    "moment": INSTANTS,
}


@settings(
    max_examples=examples(6),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_values_that_nobody_chose_have_the_same_levels(place: Place, data: st.DataObject) -> None:
    n_rows = 60
    values = {
        name: data.draw(st.lists(st.none() | drawn, min_size=n_rows, max_size=n_rows), label=name)
        for name, drawn in DRAWN.items()
    }
    schema, rows = made(list(DRAWN), values)
    scopes = [(name,) for name in DRAWN]
    check(place.source(schema, rows), schema, rows, *scopes, ("bins", "text"))


def test_a_source_that_is_one_level_off_is_found_out() -> None:
    """The comparison has teeth."""
    schema, rows = made(["bins"], {"bins": [0.05, 0.2, None]})
    right = cells(schema.axes, rows.table.to_pylist(), ("bins",))

    class Wrong:
        def measure(self, grouping: Grouping) -> CellCounts:  # noqa: ARG002 - as of a source
            levels = np.array([place + 1 for (place,) in right], dtype=np.int64)
            return CellCounts((levels,), np.array(list(right.values()), dtype=np.int64))

    with pytest.raises(AssertionError):
        check(cast("Source", Wrong()), schema, rows, ("bins",))
