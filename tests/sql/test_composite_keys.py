"""Public tables whose key has several columns, against DuckDB on the same rows in plain sight."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from cube.axis import CategoryAxis, IntegerAxis
from cube.query import N_FACTOR_CELLS_MAX
from cube.refusals import TooLarge
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.domain.allowance import N_STEPS_LOOKUP, N_STEPS_MAX
from planner.domain.relations import PublicRelation
from planner.planner import Planner
from proxy.api.requests import QueryRequest
from proxy.engine.engine import Engine
from proxy.sources.public.table import PublicTable
from proxy.tables.private_table import ServedTable
from tests.sql.comparing import oracle_rows, rows_of, same_rows
from tests.support.examples import examples
from tests.support.fakes import KnownTable, NoNoise

SCHEMA = Schema(
    table="lines",
    axes=(
        IntegerAxis(name="part", low=1, high=4, null=True),
        CategoryAxis(name="seller", values=("x", "y"), other="o"),
        IntegerAxis(name="month", low=1, high=3),
    ),
    n_records_max=10_000,
)
EVERY_CELL = np.array(list(np.ndindex(*(axis.size for axis in SCHEMA.axes))))
N_CELLS = len(EVERY_CELL)
TARGET = AccuracyTarget(half_width=25.0, confidence=0.95)
# Whom a part belongs to: an earlier table, by whose columns a later one may be joined.
PARTS = PublicTable(
    "parts", "part", pa.table({"part": [1, 2, 3], "maker": [7, 8, 8], "home": ["x", "x", "y"]})
)
STATEMENTS = """
SELECT kind, COUNT(*) FROM lines JOIN offers ON part = p AND seller = s GROUP BY kind;
SELECT kind, COUNT(*) FROM lines AS l LEFT JOIN offers AS o ON o.s = l.seller AND l.part = o.p
GROUP BY kind;
SELECT COALESCE(SUM(cost * month), 0), COUNT(cost), COUNT(*) FROM lines AS l, offers AS o
WHERE month > 1 AND l.part = o.p AND o.s = l.seller;
SELECT p, s, COUNT(*) FROM offers AS o JOIN lines AS l ON (l.part, l.seller) = (o.p, o.s)
WHERE o.cost <> 2 GROUP BY p, s;
SELECT COUNT(*) FROM lines AS l JOIN offers AS o ON l.part = o.p AND l.seller = o.s
AND l.month = o.cost;
SELECT kind, COUNT(*) FROM lines AS l, offers AS o, parts
WHERE o.p = parts.maker AND l.part = parts.part AND o.s = l.seller GROUP BY kind;
SELECT kind, COUNT(*) FROM lines AS l JOIN parts USING (part)
JOIN offers AS o ON o.p = l.part AND o.s = parts.home GROUP BY kind;
SELECT kind, part, COUNT(*) FROM lines
JOIN (SELECT p AS part, s AS seller, kind FROM offers WHERE cost > 1) AS o
USING (seller, part) GROUP BY kind, part;
SELECT COUNT(*) FROM lines AS l WHERE EXISTS
(SELECT 1 FROM offers AS o WHERE o.p = l.part AND o.s = l.seller AND o.kind = 'a');
SELECT month, COUNT(*) FROM lines AS l WHERE NOT EXISTS
(SELECT 1 FROM offers AS o WHERE l.seller = o.s AND o.p = l.part) GROUP BY month;
"""


@contextmanager
def asked(
    offers: PublicTable, rows: NDArray[np.int64]
) -> Iterator[tuple[Engine, duckdb.DuckDBPyConnection]]:
    """An engine that answers without noise, and DuckDB, over the same rows."""
    database = duckdb.connect(":memory:")
    database.execute("CREATE TABLE lines (part BIGINT, seller VARCHAR, month BIGINT)")
    values = [
        tuple(axis.levels[place] for axis, place in zip(SCHEMA.axes, row, strict=True))
        for row in rows.tolist()
    ]
    database.executemany("INSERT INTO lines VALUES (?, ?, ?)", values)
    for table in (offers, PARTS):
        database.register(table.name, table.data)
    with (
        tempfile.TemporaryDirectory() as folder,
        open_ledger(Path(folder) / "lines.ledger") as ledger,
    ):
        gate = open_table(ledger, SCHEMA, Fraction(4000), KnownTable(SCHEMA, rows), NoNoise())
        yield Engine({"lines": ServedTable(SCHEMA, TARGET, gate)}, (offers, PARTS)), database


# Keys that no private row has, and private combinations that no key is: both are usual.
KEYS = st.tuples(st.integers(min_value=1, max_value=9), st.sampled_from("xyoz"))
REST = st.tuples(st.none() | st.integers(1, 3), st.none() | st.sampled_from("ab"))


@settings(deadline=None, max_examples=examples(4))
@given(
    kept=st.dictionaries(KEYS, REST, min_size=1, max_size=12),
    times=st.lists(st.integers(1, 3), min_size=N_CELLS, max_size=N_CELLS),
)
def test_rows_are_those_of_duckdb(
    kept: dict[tuple[int, str], tuple[int | None, str | None]], times: list[int]
) -> None:
    """Each combination of levels has a row, as groups without rows are shown by Tacit alone."""
    rows = np.repeat(EVERY_CELL, times, axis=0)
    data = pa.table(
        {
            "cost": pa.array([cost for cost, _ in kept.values()], pa.int64()),
            "s": [seller for _, seller in kept],
            "kind": pa.array([kind for _, kind in kept.values()], pa.string()),
            "p": [part for part, _ in kept],
        }
    )
    with asked(PublicTable("offers", ("p", "s"), data), rows) as (engine, database):
        for sql in STATEMENTS.split(";")[:-1]:
            found = rows_of(engine.answer(QueryRequest(sql=sql)).data)
            assert same_rows(found, oracle_rows(database, sql)), sql


def wide(size: int) -> Planner:
    """A planner of two columns of many levels, and a public table that is keyed by both."""
    axes = tuple(IntegerAxis(name=name, low=1, high=size) for name in ("a", "b"))
    schema = Schema(table="wide", axes=axes, n_records_max=100)
    values = {name: ("BIGINT", [1, 2]) for name in ("a", "b", "v")}
    pairs = PublicRelation("pairs", ("a", "b", "v"), ("a", "b"), values)
    return Planner({"wide": schema}, {"wide": TARGET}, (pairs,))


@pytest.mark.parametrize("size", [2100, 1_000_000])
def test_combinations_are_counted_before_they_are_made(size: int) -> None:
    """There are more of them than are ever written out."""
    assert size**2 > N_FACTOR_CELLS_MAX
    with pytest.raises(TooLarge, match="combinations of levels"):
        wide(size).plan("SELECT v, COUNT(*) FROM wide JOIN pairs USING (a, b) GROUP BY v")


def test_their_work_counts_against_what_a_statement_may_do() -> None:
    """Each look-up would be evaluated on four million combinations."""
    size, n_asked = 2000, 4
    assert n_asked * size**2 * N_STEPS_LOOKUP > N_STEPS_MAX
    sums = ", ".join(f"SUM(v + {place})" for place in range(n_asked))
    with pytest.raises(TooLarge, match=r"steps|combinations"):
        wide(size).plan(f"SELECT {sums} FROM wide JOIN pairs USING (a, b)")  # noqa: S608 - made here
