"""One private table with every kind of column, public tables, and the same rows in DuckDB.

The rows are made as positions of levels, so that what the engine protects and what the oracle holds
are one thing: a binned value is its bin's lower edge, a measure is already on its grid.
Nothing here is random from run to run.
"""

import datetime as dt
import random
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import NoiseSource
from cube.axis import (
    Axis,
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    LevelValue,
    MeasureAxis,
    NumericAxis,
)
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.measuring.candidates import Strategy
from proxy.engine.engine import Engine
from proxy.sources.public.table import PublicTable
from proxy.synthetic_tables.store import SyntheticStore
from proxy.tables.private_table import ServedTable
from tests.support.fakes import KnownTable

UNIT = "patient_id"
SCHEMA = Schema(
    table="patients",
    axes=(
        CategoryAxis(name="sex", values=("female", "male"), null=True),
        CategoryAxis(name="city", values=("Bergen", "Oslo", "Paris", "Rome"), other="elsewhere"),
        CategoryAxis(name="Blood Type", values=("A", "AB", "B", "O")),
        IntegerAxis(name="age", low=18, high=90),
        IntegerAxis(name="visits", low=0, high=12, null=True),
        NumericAxis(name="bmi", edges=(15.0, 18.5, 25.0, 30.0, 50.0), other=-1.0),
        BooleanAxis(name="insured", null=True),
        DateAxis(name="admitted", low=dt.date(2023, 11, 1), high=dt.date(2024, 2, 29)),
        MeasureAxis(name="cost", low=0, high=500, step=5),
        MeasureAxis(name="stay", low=0, high=14, step=Fraction(1, 2), null=True),
    ),
    n_records_max=10_000,
    unit=UNIT,
)
DEFAULT = AccuracyTarget(half_width=25.0, confidence=0.95)
BUDGET = Fraction(4000)
N_RECORDS = 2000
SEED = 20120815

# A key that no private row has, and no row for "elsewhere": inner and outer joins differ.
CITIES = PublicTable(
    "cities",
    "city",
    pa.table(
        {
            "city": ["Bergen", "Berlin", "Oslo", "Paris", "Rome"],
            "country": ["Norway", "Germany", "Norway", "France", "Italy"],
            "population": [290_000, 3_700_000, 710_000, 2_100_000, 2_750_000],
            "is_capital": [False, True, True, True, True],
        }
    ),
)

# Without a key: it can be read, but not joined with private rows.
HOLIDAYS = PublicTable(
    "holidays",
    None,
    pa.table(
        {"day": [dt.date(2023, 12, 25), dt.date(2024, 1, 1)], "name": ["Christmas", "New Year"]}
    ),
)
# With a key of two columns, of which not every combination is there.
TARIFFS = PublicTable(
    "tariffs",
    ("city", "sex"),
    pa.table(
        {
            "fee": [10, 25, 15, 40, None, 5],
            "sex": ["female", "male", "male", "female", "male", "female"],
            "city": ["Bergen", "Bergen", "Oslo", "Paris", "Rome", "Berlin"],
            "band": ["low", "high", "low", "high", "low", "low"],
        }
    ),
)
PUBLIC = (CITIES, HOLIDAYS, TARIFFS)


def positions(n_records: int = N_RECORDS) -> NDArray[np.int64]:
    """The private rows as level positions, (n_records, n_axes).

    Each axis is skewed in its own way, and each of its levels occurs: so a GROUP BY of one column
    has the same groups here and in DuckDB, and no two large groups are of one size.
    """
    draw = random.Random(SEED)  # noqa: S311 - data for tests, not noise
    rows = []
    for place in range(n_records):
        severity = draw.random()
        rows.append([_position(axis, place, severity, draw) for axis in SCHEMA.axes])
    return np.array(rows, dtype=np.int64)


def _position(axis: Axis, place: int, severity: float, draw: random.Random) -> int:
    if place < axis.size:
        return place
    if isinstance(axis, MeasureAxis | IntegerAxis):
        mixed = 0.6 * severity + 0.4 * draw.random()  # so that columns say something of each other
        return min(int(axis.size * mixed**1.5), axis.size - 1)
    return min(int(axis.size * draw.random() ** 1.3), axis.size - 1)


def records(rows: NDArray[np.int64]) -> list[tuple[LevelValue, ...]]:
    """The rows as values, with the unit's identifier first."""
    return [
        (
            1000 + place,
            *(axis.levels[int(k)] for axis, k in zip(SCHEMA.axes, row, strict=True)),
        )
        for place, row in enumerate(rows)
    ]


def database(rows: NDArray[np.int64]) -> duckdb.DuckDBPyConnection:
    """The oracle: the protected rows in plain sight, with functions for what only Tacit knows."""
    connection = duckdb.connect(":memory:")
    columns = ", ".join(f'"{axis.name}" {axis.sql_type}' for axis in SCHEMA.axes)
    connection.execute(f"CREATE TABLE patients ({UNIT} BIGINT, {columns})")
    places = ", ".join("?" for _ in range(len(SCHEMA.axes) + 1))
    connection.executemany(f"INSERT INTO patients VALUES ({places})", records(rows))  # noqa: S608 - question marks
    for table in PUBLIC:
        connection.register("rows", table.data)
        connection.execute(f"CREATE TABLE {table.name} AS SELECT * FROM rows")  # noqa: S608 - a fixed name
    connection.execute("CREATE SCHEMA public")
    connection.execute("CREATE VIEW public.patients AS SELECT * FROM main.patients")
    connection.execute("CREATE VIEW public.cities AS SELECT * FROM main.cities")
    for name in ("dp_interval_low", "dp_interval_high"):
        connection.execute(f"CREATE MACRO {name}(x) AS x, (x, confidence) AS x")
    for name in ("dp_cost", "dp_stderr"):
        connection.execute(f"CREATE MACRO {name}(x) AS 0.0 * x")
    connection.execute("CREATE MACRO dp_source(x) AS CASE WHEN x IS NULL THEN '' ELSE '' END")
    return connection


@contextmanager
def patients_engine(
    folder: Path, source: KnownTable, noise: NoiseSource, *, strategy: Strategy = Strategy.AUTO
) -> Iterator[Engine]:
    """An engine on the rows, with its ledger in `folder`; the noise is the test's choice."""
    with open_ledger(folder / "patients.ledger") as ledger:
        gate = open_table(ledger, SCHEMA, BUDGET, source, noise)
        table = ServedTable(SCHEMA, DEFAULT, gate, strategy)
        store = SyntheticStore(folder / "synthetic")
        yield Engine({SCHEMA.table: table}, PUBLIC, store=store)
