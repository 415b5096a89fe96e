"""Two private tables behind a whole engine that keeps synthetic tables; everything is real."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from accountant.gate.opening import open_table
from accountant.ledger.credentials import EVERY_TABLE, Role
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.refusals import Refused
from proxy.api.requests import LOCAL, Caller, QueryRequest
from proxy.config.memory import DEFAULT_LIMITS, SyntheticLimits
from proxy.engine.engine import Engine
from proxy.sources.public.table import PublicTable
from proxy.synthetic_tables.record import SyntheticRecord
from proxy.synthetic_tables.request import Method
from proxy.synthetic_tables.store import SyntheticStore
from proxy.tables.private_table import ServedTable
from tests.support.fakes import KnownTable
from tests.support.worlds import DEFAULT, SCHEMA

ANN = Caller(Payer("ann"), Role.ANALYST, (EVERY_TABLE,))
BOB = Caller(Payer("bob"), Role.ANALYST, ("people",))
EVE = Caller(Payer("eve"), Role.ANALYST, ("staff",))
MAKE = "CREATE SYNTHETIC TABLE s FROM people"
TWO_COLUMNS = "columns => (city, member)"
CITIES = PublicTable(
    "cities", "city", pa.table({"city": ["Oslo", "Rome"], "country": ["Norway", "Italy"]})
)


@contextmanager
def synthetic_engine(
    folder: Path,
    *,
    store: Path | None = None,
    budget: Fraction = Fraction(10),
    limits: SyntheticLimits = DEFAULT_LIMITS,
    previews: tuple[str, ...] = (),
) -> Iterator[Engine]:
    """An engine with the tables `people` and `staff`, and the public table `cities`."""
    with open_ledger(folder / "people.ledger") as ledger:
        tables = {name: served(ledger, name, budget) for name in ("people", "staff")}
        place = folder / "synthetic" if store is None else store
        yield Engine(tables, (CITIES,), store=SyntheticStore(place, limits), previews=previews)


def served(ledger: Ledger, name: str, budget: Fraction) -> ServedTable:
    schema = replace(SCHEMA, table=name)
    draw = np.random.default_rng(len(name))  # no two tables have the same rows
    records = np.column_stack([draw.integers(0, axis.size, 2000) for axis in schema.axes])
    source = KnownTable(schema, records)
    return ServedTable(schema, DEFAULT, open_table(ledger, schema, budget, source, SystemNoise()))


def asked(engine: Engine, sql: str, caller: Caller = LOCAL) -> list[dict[str, object]]:
    """The rows of an answer."""
    rows: list[dict[str, object]] = engine.answer(
        QueryRequest(sql=sql, caller=caller)
    ).data.to_pylist()
    return rows


def refused(engine: Engine, sql: str, caller: Caller = LOCAL) -> Refused:
    """How a statement is refused."""
    with pytest.raises(Refused) as caught:
        asked(engine, sql, caller)
    return caught.value


def spent(engine: Engine, table: str = "people") -> Fraction:
    """What a table's budget has paid for so far."""
    return next(one.spent for one in engine.budgets(LOCAL) if one.table == table)


def record_of(name: str, number: int = 0) -> SyntheticRecord:
    """A record of rows that nobody drew."""
    return SyntheticRecord(
        id=f"{number:016x}",
        name=name,
        table="people",
        method=Method.PAIRWISE,
        epsilon=Fraction(1, 3),
        epsilon_spent=Fraction(1, 2**40),
        seed=5,
        n_rows=ROWS.num_rows,
        n_bytes=ROWS.nbytes,
        columns=(("age", "BIGINT"), ("city", "VARCHAR")),
        unknown=("city",),
        tables=(("age", "visits"),),
        n_charges=3,
        incomplete="",
        made_by="ann",
        made_at="2026-11-22T03:00:00.000+00:00",
    )


ROWS = pa.table({"age": pa.array([30, 40], pa.int64()), "city": ["Oslo", None]})
MODEL = {"total": 2.0, "seed": 5}
