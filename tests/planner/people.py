"""A small public table with every kind of column, its records, and the same records in DuckDB."""

import datetime as dt
from fractions import Fraction

import duckdb
import numpy as np

from cube.axis import (
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    LevelValue,
    NumericAxis,
)
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.planner import Planner
from planner.workload import Workload
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
    connection.execute("CREATE SCHEMA public")
    connection.execute("CREATE VIEW public.people AS SELECT * FROM main.people")
    return connection


def check_against(connection: duckdb.DuckDBPyConnection, sql: str, workload: Workload) -> None:
    """Assert that a workload, without noise, gives what DuckDB gives for the same SQL.

    DuckDB shows the groups that the records hold, and the workload those that they could hold; and
    where DuckDB says NULL, because nothing was summed, the workload says a number.
    """
    got = result_rows(workload, SCHEMA, RECORDS)
    n_keys = sum(column.kind == "key" for column in workload.columns)
    order = [place for place, column in enumerate(workload.columns) if column.kind == "key"]
    assert n_keys in (0, len(workload.keys)), "the check needs all the keys in the result"
    by_key = {tuple(_plain(row[place]) for place in order): row for row in got}
    assert len(by_key) == len(got)
    for expected in connection.execute(sql).fetchall():
        row = by_key[tuple(_plain(expected[place]) for place in order)]
        for place, (one, other) in enumerate(zip(row, expected, strict=True)):
            if place not in order and other is not None:
                assert isinstance(one, Fraction)
                error = abs(float(one) - float(other))
                # Doubles are kept to 26 bits of the largest.
                assert error <= 1e-7 * (1 + abs(float(other))), sql


def _plain(value: object) -> object:
    if isinstance(value, dt.datetime):
        return value.date()
    return value if value is None or isinstance(value, str | bool | dt.date) else float(str(value))
