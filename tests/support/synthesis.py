"""A private table for tests of synthetic tables: columns of every kind, and rows that depend."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.axis import Axis, BooleanAxis, CategoryAxis, DateAxis, IntegerAxis, NumericAxis
from cube.schema import Schema
from cube.target import AccuracyTarget
from proxy.tables.private_table import ServedTable
from tests.support.fakes import KnownTable

AXES: tuple[Axis, ...] = (
    CategoryAxis(name="job", values=("baker", "judge", "nurse"), other="another", null=True),
    BooleanAxis(name="senior"),
    IntegerAxis(name="age", low=20, high=39),
    NumericAxis(name="pay", edges=(0.0, 10.0, 100.0, 1000.0), other=-1.0, null=True),
    DateAxis(name="since", low=date(2020, 1, 1), high=date(2020, 1, 5)),
)
SCHEMA = Schema(table="staff", axes=AXES, n_records_max=100_000)
N_ROWS = 5_000


def staff(n_rows: int = N_ROWS, seed: int = 1) -> NDArray[np.int64]:
    """Rows as level positions: job decides pay, age decides senior, and since is by itself."""
    rng = np.random.default_rng(seed)
    job = rng.choice(5, n_rows, p=[0.4, 0.3, 0.2, 0.08, 0.02])
    age = rng.integers(0, 20, n_rows)
    senior = (age + rng.integers(0, 5, n_rows) > 12).astype(np.int64)
    pay = (job + rng.integers(0, 2, n_rows)) % 5
    since = rng.integers(0, 5, n_rows)
    return np.stack([job, senior, age, pay, since], axis=1).astype(np.int64)


@contextmanager
def served_staff(
    folder: Path, budget: Fraction = Fraction(10), records: NDArray[np.int64] | None = None
) -> Iterator[ServedTable]:
    """The table behind a real gate."""
    rows = staff() if records is None else records
    with open_ledger(folder / "staff.ledger") as ledger:
        gate = open_table(ledger, SCHEMA, budget, KnownTable(SCHEMA, rows), SystemNoise())
        yield ServedTable(SCHEMA, AccuracyTarget(half_width=50.0, confidence=0.95), gate)
