"""The source against brute force: random tables in every format, counted row by row in Python."""

import csv
import datetime as dt
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cube.axis import (
    Axis,
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    NumericAxis,
    TimestampAxis,
)
from cube.schema import Schema
from proxy.sources import duckdb_source as module
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from tests.support.examples import examples
from tests.support.groupings import each

Row: TypeAlias = tuple[Any, ...]
Writer: TypeAlias = Callable[[Path, Schema, Sequence[Row]], SourceLocation]

EDGES = (-1.5, 0.0, 0.1, 2.5, 10.0)
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - levels have no zone
LOW_HOUR, HIGH_HOUR = EPOCH - dt.timedelta(hours=3), EPOCH + dt.timedelta(hours=3)
LOW_DAY, HIGH_DAY = dt.date(2019, 12, 30), dt.date(2020, 3, 2)
ODD_TEXTS = ("a", "B", "b", "it's", 'say "so"', "x,y", "two\nlines", "é", "NULL", " a", "-")
ARROW_TYPES = {
    CategoryAxis: pa.string(),
    IntegerAxis: pa.int64(),
    NumericAxis: pa.float64(),
    BooleanAxis: pa.bool_(),
    DateAxis: pa.date32(),
    TimestampAxis: pa.timestamp("us"),
}
VALUES: dict[type[Axis], st.SearchStrategy[Any]] = {
    CategoryAxis: st.sampled_from(ODD_TEXTS),
    IntegerAxis: st.one_of(st.integers(-8, 8), st.sampled_from((2**40, -(2**63), 2**63 - 1))),
    NumericAxis: st.one_of(
        st.sampled_from(EDGES),
        st.sampled_from([math.nextafter(edge, side) for edge in EDGES for side in (-99, 99)]),
        st.floats(-3, 12),
        st.sampled_from((math.nan, math.inf, -math.inf, -0.0, 1e308)),
    ),
    BooleanAxis: st.booleans(),
    DateAxis: st.one_of(
        st.dates(dt.date(2019, 12, 28), dt.date(2020, 3, 4)),
        st.sampled_from((dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2020, 2, 29))),
    ),
    TimestampAxis: st.one_of(
        st.datetimes(LOW_HOUR - dt.timedelta(hours=3), HIGH_HOUR + dt.timedelta(hours=3)),
        st.sampled_from((LOW_HOUR, HIGH_HOUR, HIGH_HOUR + dt.timedelta(hours=1))),
        st.sampled_from((LOW_HOUR - dt.timedelta(microseconds=1), EPOCH)),
    ),
}


@st.composite
def axes(draw: st.DrawFn, name: str) -> Axis:
    """One axis of any kind, with or without NULL and OTHER."""
    null = draw(st.booleans())
    kind = draw(st.sampled_from(sorted(VALUES, key=lambda kind: kind.__name__)))
    if kind is CategoryAxis:
        values = tuple(draw(st.lists(st.sampled_from(ODD_TEXTS), unique=True, max_size=6)))
        rest = draw(st.sampled_from((None, "(other)"))) if values or null else "(other)"
        return CategoryAxis(name=name, null=null, other=rest, values=values)
    if kind is IntegerAxis:
        low = draw(st.integers(-6, 3))
        high = draw(st.integers(low, 6))
        beyond = draw(st.sampled_from((None, 7)))
        return IntegerAxis(name=name, null=null, other=beyond, low=low, high=high)
    if kind is NumericAxis:
        below = draw(st.sampled_from((None, -2.0)))
        return NumericAxis(name=name, null=null, other=below, edges=EDGES)
    if kind is TimestampAxis:
        step = draw(st.sampled_from(("hour", "minute")))
        last = HIGH_HOUR + (dt.timedelta(minutes=59) if step == "minute" else dt.timedelta())
        never = draw(st.sampled_from((None, EPOCH - dt.timedelta(days=9, seconds=5))))
        return TimestampAxis(name=name, null=null, other=never, low=LOW_HOUR, high=last, step=step)
    if kind is DateAxis:
        epoch = draw(st.sampled_from((None, dt.date(1970, 1, 1))))
        return DateAxis(name=name, null=null, other=epoch, low=LOW_DAY, high=HIGH_DAY)
    return BooleanAxis(name=name, null=null)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, list[Row]]:
    """A schema of up to three axes with awkward names, and a few rows for it."""
    names = ('the "x"', "it's", "group")
    n_axes = draw(st.integers(1, len(names)))
    declared = tuple(draw(axes(name)) for name in names[:n_axes])
    row = st.tuples(*(st.one_of(st.none(), VALUES[type(axis)]) for axis in declared))
    rows = draw(st.lists(row, max_size=25))
    return Schema(table="people", axes=declared, n_records_max=1000), rows


def position(axis: Axis, value: Any) -> int | None:
    """The level of a value by the words of `cube.axis`; None if it has none."""
    if value is None:
        return axis.other_position if axis.null_position is None else axis.null_position
    found: int | None = None
    if isinstance(axis, TimestampAxis):
        found = axis.position_of(axis.floor(value))
    elif isinstance(axis, NumericAxis):
        if axis.edges[0] <= value <= axis.edges[-1]:
            found = min(bisect_right(axis.edges, value), len(axis.edges) - 1) - 1
    elif value in axis.regular:
        found = axis.regular.index(value)
    return axis.other_position if found is None else found


def brute_force(schema: Schema, rows: Sequence[Row], scope: Sequence[str]) -> Counter[Row]:
    """Counts of the cells of a scope, over the rows whose every value has a level."""
    counted: Counter[Row] = Counter()
    for row in rows:
        cell = {
            axis.name: position(axis, value) for axis, value in zip(schema.axes, row, strict=True)
        }
        if None not in cell.values():
            counted[tuple(cell[name] for name in scope)] += 1
    return counted


def measured(source: DuckDbSource, schema: Schema, scope: Sequence[str]) -> Counter[Row]:
    found = source.measure(each(schema, *scope))
    cells = zip(*(levels.tolist() for levels in found.levels), strict=True)
    keys: Iterator[Row] = cells if scope else iter([()])
    return Counter(dict(zip(keys, found.counts.tolist(), strict=True)))


def write_csv(folder: Path, schema: Schema, rows: Sequence[Row]) -> SourceLocation:
    path = folder / "people.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([axis.name for axis in schema.axes] + ["not declared"])
        for row in rows:
            writer.writerow(["" if value is None else value for value in row] + ["secret"])
    return SourceLocation(path=path)


def write_parquet(folder: Path, schema: Schema, rows: Sequence[Row]) -> SourceLocation:
    path = folder / "people.parquet"
    pq.write_table(_arrow(schema, rows), path)
    return SourceLocation(path=path)


def write_duckdb(folder: Path, schema: Schema, rows: Sequence[Row]) -> SourceLocation:
    path = folder / "people.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(path) as connection:
        connection.register("written", _arrow(schema, rows))
        connection.execute('CREATE TABLE "the ""people""" AS FROM written')
    return SourceLocation(path=path, source_table='the "people"')


def _arrow(schema: Schema, rows: Sequence[Row]) -> pa.Table:
    columns = [[row[place] for row in rows] for place in range(len(schema.axes))]
    return pa.table(
        [
            pa.array(column, ARROW_TYPES[type(axis)])
            for axis, column in zip(schema.axes, columns, strict=True)
        ],
        names=[axis.name for axis in schema.axes],
    )


@pytest.mark.parametrize("write", [write_csv, write_parquet, write_duckdb])
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(table=tables())
def test_every_scope_is_counted_as_brute_force_counts_it(
    write: Writer, tmp_path_factory: pytest.TempPathFactory, table: tuple[Schema, list[Row]]
) -> None:
    schema, rows = table
    source = DuckDbSource(schema, write(tmp_path_factory.mktemp("source"), schema, rows))
    names = sorted(schema.by_name)
    for size in range(len(names) + 1):
        for scope in combinations(names, size):
            expected = brute_force(schema, rows, scope)
            if not scope and not expected:
                expected = Counter({(): 0})
            found = measured(source, schema, scope)
            assert found == expected
            assert set(found) == set(expected)


def test_levels_come_in_the_order_of_the_scope(tmp_path: Path) -> None:
    schema = Schema(
        table="t",
        axes=(
            IntegerAxis(name="a", low=0, high=9),
            CategoryAxis(name="b", values=("no", "yes")),
        ),
        n_records_max=10,
    )
    source = DuckDbSource(schema, write_csv(tmp_path, schema, [(7, "yes"), (7, "yes"), (3, "no")]))
    assert measured(source, schema, ("a", "b")) == {(7, 1): 2, (3, 0): 1}


def test_counts_are_made_once_and_cannot_be_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    axes = tuple(IntegerAxis(name=name, low=0, high=9) for name in "ab")
    schema = Schema(table="t", axes=axes, n_records_max=10)
    path = write_csv(tmp_path, schema, [(7, 1), (7, 1), (3, 0)])
    source = DuckDbSource(schema, path)
    first = source.measure(each(schema, "a"))
    assert source.measure(each(schema, "a")) is first
    for array in (*first.levels, first.counts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
    # With room for one scope of two cells the other is counted again, and alike.
    monkeypatch.setattr(module, "N_COUNTED_BYTES_MAX", 32)
    small = DuckDbSource(schema, path)
    counted = [small.measure(each(schema, name)) for name in ("a", "b", "a")]
    assert counted[0] is not counted[2]
    assert counted[0].counts.tolist() == counted[2].counts.tolist() == first.counts.tolist()


def test_a_row_without_a_level_is_left_out_of_every_count(tmp_path: Path) -> None:
    schema = Schema(
        table="t",
        axes=(IntegerAxis(name="a", low=0, high=9), CategoryAxis(name="b", values=("yes",))),
        n_records_max=10,
    )
    rows = [(1, "yes"), (10, "yes"), (1, "maybe"), (None, "yes"), (2, None)]
    source = DuckDbSource(schema, write_csv(tmp_path, schema, rows))
    assert measured(source, schema, ()) == {(): 1}
    assert measured(source, schema, ("a",)) == {(1,): 1}
    assert measured(source, schema, ("b",)) == {(0,): 1}


@pytest.mark.parametrize(
    "arrow_type",
    [
        *(pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.uint64()),
        *(pa.float32(), pa.float64(), pa.decimal128(22, 2)),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "axis",
    [
        IntegerAxis(name="a", low=-3, high=5, other=-9),
        NumericAxis(name="a", edges=(-3.0, 2.0, 5.0), other=-9.0),
    ],
    ids=["integer", "numeric"],
)
def test_any_number_type_serves_a_number_axis(
    tmp_path: Path, axis: Axis, arrow_type: pa.DataType
) -> None:
    values = [0, 1, 2, 5, 6, 100]
    pq.write_table(
        pa.table({"A": pa.array(values, pa.int64()).cast(arrow_type)}), tmp_path / "a.parquet"
    )
    schema = Schema(table="t", axes=(axis,), n_records_max=10)
    source = DuckDbSource(schema, SourceLocation(path=tmp_path / "a.parquet"))
    assert measured(source, schema, ("a",)) == brute_force(
        schema, [(value,) for value in values], ("a",)
    )


def test_whole_numbers_written_with_a_decimal_point_are_whole(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n3.0\n +4\n05.00\n99999999999999999999999\n")
    axis = IntegerAxis(name="a", low=0, high=9, other=-1)
    schema = Schema(table="t", axes=(axis,), n_records_max=10)
    source = DuckDbSource(schema, SourceLocation(path=tmp_path / "a.csv"))
    assert measured(source, schema, ("a",)) == {(3,): 1, (4,): 1, (5,): 1, (10,): 1}


@pytest.mark.parametrize(
    "axis",
    [IntegerAxis(name="a", low=0, high=9), NumericAxis(name="a", edges=(0.0, 9.0))],
    ids=["integer", "numeric"],
)
@pytest.mark.parametrize("arrow_type", [pa.float32(), pa.float64()], ids=str)
def test_nan_is_outside_even_where_a_parquet_file_hides_it(
    tmp_path: Path, axis: Axis, arrow_type: pa.DataType
) -> None:
    """The statistics of the file say that all values are 1, so a bare comparison is dropped."""
    values = pa.array([1.0, math.nan], arrow_type)
    pq.write_table(pa.table({"a": values}), tmp_path / "a.parquet")
    schema = Schema(table="t", axes=(axis,), n_records_max=10)
    source = DuckDbSource(schema, SourceLocation(path=tmp_path / "a.parquet"))
    assert measured(source, schema, ()) == {(): 1}


def test_an_enum_column_serves_a_category(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "a.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT 'x'::ENUM('z', 'x') AS a")
    schema = Schema(table="t", axes=(CategoryAxis(name="a", values=("w", "x")),), n_records_max=9)
    source = DuckDbSource(schema, SourceLocation(path=tmp_path / "a.duckdb", source_table="t"))
    assert measured(source, schema, ("a",)) == {(1,): 1}
