"""A small public table with every kind of column, its records, and the same records in DuckDB."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
from sqlglot import parse_one

from cube.axis import (
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    LevelValue,
    MeasureAxis,
    NumericAxis,
)
from cube.query import QueryBlock
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.planner import Planner
from planner.workload import Part, Workload
from tests.sql.comparing import same_rows, same_sequence
from tests.support.noiseless import Record, result_rows

SCHEMA = Schema(
    table="people",
    axes=(
        CategoryAxis(name="sex", values=("female", "male"), null=True),
        CategoryAxis(name="City", values=("Oslo", "Bergen", "a_b%c"), other="elsewhere"),
        IntegerAxis(name="age", low=0, high=19, null=True),
        IntegerAxis(name="score", low=-3, high=3),
        BooleanAxis(name="member", null=True),
        DateAxis(name="joined", low=dt.date(2020, 1, 28), high=dt.date(2020, 2, 4), null=True),
        NumericAxis(name="income", edges=(0.0, 10.0, 20.5, 50.0), other=-1.0, null=True),
        MeasureAxis(name="spend", low=-5, high=20, step=Fraction(1, 2), null=True),
    ),
    n_records_max=1000,
)
TARGET = AccuracyTarget(half_width=10.0, confidence=0.95)
N_RECORDS = 300


def _records() -> list[Record]:
    random = np.random.default_rng(20120815)
    records: list[Record] = []
    for _ in range(N_RECORDS):
        record: dict[str, LevelValue] = {}
        for axis in SCHEMA.axes:
            value = axis.levels[int(random.integers(axis.size))]
            if axis.name == "income" and isinstance(value, float) and value >= 0:
                place = axis.levels.index(value)
                low, high = (0.0, 10.0, 20.5)[place], (10.0, 20.5, 50.0)[place]
                within = float(low + (high - low) * random.random())
                value = (low, within, 50.0 if high == 50.0 else within)[int(random.integers(3))]
            if axis.name == "spend" and value is not None:
                value = float(random.choice([-1000.0, -5.2, 2.25, -2.25, 3.74, 20.3, 7.0, 1e9]))
            record[axis.name] = value
        records.append(record)
    return records


RECORDS = _records()


def planner() -> Planner:
    return Planner({"people": SCHEMA}, {"people": TARGET})


def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:")
    connection.execute("SET ieee_floating_point_ops = false")
    connection.execute("SET integer_division = true")
    columns = ", ".join(f'"{axis.name}" {axis.sql_type}' for axis in SCHEMA.axes)
    connection.execute(f"CREATE TABLE people ({columns})")
    places = ", ".join("?" for _ in SCHEMA.axes)
    connection.executemany(
        f"INSERT INTO people VALUES ({places})",  # noqa: S608 - places are question marks
        [[record[axis.name] for axis in SCHEMA.axes] for record in RECORDS],
    )
    # As a measure is declared: clamped to its bounds and rounded to halves, upwards in the middle.
    connection.execute(
        "UPDATE people SET spend = FLOOR(LEAST(GREATEST(spend, -5), 20) * 2 + 0.5) / 2"
        " WHERE spend IS NOT NULL"
    )
    connection.execute("CREATE SCHEMA public")
    connection.execute("CREATE VIEW public.people AS SELECT * FROM main.people")
    return connection


def part_of(workload: Workload) -> Part:
    """The one part of a workload."""
    (part,) = workload.parts
    return part


def block_of(workload: Workload, place: int = 0) -> QueryBlock:
    """The one block of an aggregate of the one part."""
    (block,) = part_of(workload).aggregates[place].blocks
    return block


def check_against(connection: duckdb.DuckDBPyConnection, sql: str, workload: Workload) -> None:
    """Assert that a workload, without noise, gives what DuckDB gives for the same SQL.

    DuckDB shows the groups that the records hold, and the workload those that they could hold; and
    where DuckDB says NULL, because nothing was summed, the workload says a number. What SQL makes
    of the answers, and grouping sets, must have DuckDB's rows and no others, in their order if any.
    """
    got = result_rows(workload, SCHEMA, RECORDS)
    expected_rows = connection.execute(sql).fetchall()
    if workload.outer is not None or _n_sets(workload) > 1:
        one, other = [[tuple(map(_plain, row)) for row in rows] for rows in (got, expected_rows)]
        same = same_sequence if _is_ordered(workload) else same_rows
        assert same(one, other), (sql, one, other)
        return
    part = part_of(workload)
    order = [place for place, column in enumerate(part.columns) if column.kind == "key"]
    assert len(order) in (0, len(part.keys)), "the check needs all the keys in the result"
    by_key = {tuple(_plain(row[place]) for place in order): row for row in got}
    assert len(by_key) == len(got)
    for expected in expected_rows:
        row = by_key[tuple(_plain(expected[place]) for place in order)]
        for place, (shown, truth) in enumerate(zip(row, expected, strict=True)):
            if place not in order and truth is not None:
                assert isinstance(shown, Fraction | float), sql
                error = abs(float(shown) - float(truth))
                # Doubles are kept to 26 bits of the largest.
                assert error <= 1e-7 * (1 + abs(float(truth))), sql


def _is_ordered(workload: Workload) -> bool:
    """Whether the result has an order."""
    outer = workload.outer
    return outer is not None and bool(parse_one(outer.sql, dialect="duckdb").args.get("order"))


def _n_sets(workload: Workload) -> int:
    """The number of grouping sets."""
    return max((len(one.blocks) for part in workload.parts for one in part.aggregates), default=1)


def _plain(value: object) -> str | bool | float | dt.date | None:
    """A value as one of few types: a number is a double, midnight is a day."""
    if isinstance(value, dt.datetime):
        return value.date()
    if value is None or isinstance(value, str | bool | dt.date):
        return value
    assert isinstance(value, int | float | Fraction | Decimal)
    return float(value)
