"""The same rows behind two servers: a real PostgreSQL, and Tacit on its PostgreSQL wire.

Tacit's noise is 0, so that its answers are those of PostgreSQL.
"""

import datetime as dt
import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
import psycopg
import pyarrow as pa
from numpy.typing import NDArray

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from cube.axis import (
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    MeasureAxis,
    NumericAxis,
    TimestampAxis,
)
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.measuring.candidates import Strategy
from proxy.engine.engine import Engine
from proxy.scheduling.fair_share import DEFAULT_TIMES
from proxy.sources.public.table import PublicTable
from proxy.synthetic_tables.store import SyntheticStore
from proxy.tables.private_table import ServedTable
from tests.support.fakes import KnownTable, NoNoise
from tests.support.postgres import PostgresServer
from tests.support.postgres_wire import postgres_serving

SEED: Final = 7
N_ROWS: Final = 3000
CITIES: Final = (
    *("Oslo", "oslo", "Zürich", "O'Brien", "São Paulo", "Trail ", "  Lead", "", "100%", "a_b"),
    *("Ålesund", None),
)
REGIONS: Final = (
    ("Oslo", "North", 700_000),
    ("Zürich", "South", 400_000),
    ("O'Brien", "North", 10),
    ("São Paulo", "South", 12_000_000),
    ("Ålesund", None, 50_000),
)
COLUMNS: Final = (
    "id bigint, city text, age bigint, amount numeric(10,2), d date, ts timestamp, b boolean, "
    'x double precision, "group" text, "order" bigint, "Mixed Case" text'
)
SCHEMA: Final = Schema(
    table="t",
    axes=(
        CategoryAxis(
            name="city", values=tuple(one for one in CITIES if one is not None), null=True
        ),
        IntegerAxis(name="age", low=0, high=99, null=True),
        MeasureAxis(name="amount", low=-50, high=150, step=Fraction(1, 100)),
        DateAxis(name="d", low=dt.date(2023, 12, 25), high=dt.date(2025, 1, 10)),
        TimestampAxis(
            name="ts",
            low=dt.datetime(2024, 3, 30),  # noqa: DTZ001 - of no zone
            high=dt.datetime(2024, 4, 5),  # noqa: DTZ001 - the same
            step="minute",
        ),
        BooleanAxis(name="b", null=True),
        NumericAxis(name="x", edges=(0.0, 0.5, 1.0, 1.5, 2.0, 2.75, 3.0)),
        CategoryAxis(name="group", values=("a", "b", "c")),
        IntegerAxis(name="order", low=1, high=3),
        CategoryAxis(name="Mixed Case", values=("X", "Y", "z")),
    ),
    n_records_max=N_ROWS,
    unit="id",
)
TARGET: Final = AccuracyTarget(half_width=2.0, confidence=0.95)
BUDGET: Final = Fraction(4096)
PATIENT: Final = replace(DEFAULT_TIMES, statement=60.0)  # the machine may be busy


def rows() -> list[tuple[Any, ...]]:
    """The private rows; the same in every run."""
    draw = random.Random(SEED)  # noqa: S311 - data for tests, not noise
    return [
        (
            number,
            draw.choice(CITIES),
            draw.choice([None, *range(100)]),
            Decimal(draw.randrange(-5000, 15001)) / 100,
            dt.date(2023, 12, 25) + dt.timedelta(days=draw.randrange(380)),
            dt.datetime(2024, 3, 30) + dt.timedelta(minutes=draw.randrange(7200)),  # noqa: DTZ001
            draw.choice([True, False, None]),
            draw.choice([0.0, 0.5, 1.0, 1.5, 2.0, 2.75]),  # the lower edges of its bins
            draw.choice("abc"),
            draw.choice([1, 2, 3]),
            draw.choice("XYz"),
        )
        for number in range(1, N_ROWS + 1)
    ]


def positions(records: Sequence[tuple[Any, ...]]) -> NDArray[np.int64]:
    """The private rows as level positions, without the unit."""
    places = [{level: place for place, level in enumerate(axis.levels)} for axis in SCHEMA.axes]
    return np.array(
        [
            [
                place[float(value) if isinstance(value, Decimal) else value]
                for place, value in zip(places, row[1:], strict=True)
            ]
            for row in records
        ],
        dtype=np.int64,
    )


@contextmanager
def tacit_serving(folder: Path) -> Iterator[psycopg.Connection]:
    """A connection to Tacit with the rows, within a `with` block."""
    with ExitStack() as stack:
        ledger = stack.enter_context(open_ledger(folder / "t.ledger"))
        source = KnownTable(SCHEMA, positions(rows()))
        gate = open_table(ledger, SCHEMA, BUDGET, source, NoNoise())
        table = ServedTable(SCHEMA, TARGET, gate, Strategy.QUERY)
        store = SyntheticStore(folder / "synthetic")
        columns = zip(("city", "region", "pop"), zip(*REGIONS, strict=True), strict=True)
        regions = PublicTable("regions", "city", pa.table({n: list(v) for n, v in columns}))
        engine = Engine({"t": table}, (regions,), store=store)
        host, _, port = stack.enter_context(postgres_serving(engine, times=PATIENT)).rpartition(":")
        where = f"host={host} port={port} user=anybody dbname=tacit"
        yield stack.enter_context(psycopg.connect(where, autocommit=True))


@contextmanager
def postgres_with_rows(server: PostgresServer) -> Iterator[psycopg.Connection]:
    """A connection to a database of a real PostgreSQL with the rows, within a `with` block."""
    with server.connect() as first:
        first.execute("DROP DATABASE IF EXISTS tacit")
        first.execute("CREATE DATABASE tacit TEMPLATE template0 LC_CTYPE 'C.UTF-8'")
    with server.connect("tacit") as connection:
        connection.execute(f"CREATE TABLE t ({COLUMNS})")
        connection.execute("CREATE TABLE regions (city text, region text, pop bigint)")
        for name, lines in (("t", rows()), ("regions", REGIONS)):
            with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
                for line in lines:
                    copy.write_row(line)
        connection.execute("SET statement_timeout = '20s'")
        yield connection
