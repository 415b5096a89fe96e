"""A small private table of categories behind a whole engine; the noise is the test's choice."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import NoiseSource, SystemNoise
from cube.axis import CategoryAxis
from cube.schema import Schema
from cube.target import AccuracyTarget
from proxy.engine.engine import Engine
from proxy.tables.private_table import ServedTable
from tests.support.fakes import KnownTable

TABLE = "rows"
DEFAULT = AccuracyTarget(half_width=30.0, confidence=0.95)
BUDGET = Fraction(4000)


def schema_of(sizes: Mapping[str, int]) -> Schema:
    """A table of text columns with so many levels each: ``a0``, ``a1``, .. of a column ``a``."""
    axes = tuple(
        CategoryAxis(name=name, values=tuple(f"{name}{k}" for k in range(size)))
        for name, size in sizes.items()
    )
    return Schema(table=TABLE, axes=axes, n_records_max=1_000_000)


def records_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Records with these counts of every cell, a column a dimension."""
    cells = np.argwhere(np.ones(counts.shape, dtype=np.bool_))
    return np.repeat(cells, counts.ravel(), axis=0).astype(np.int64)


@contextmanager
def square_engine(
    folder: Path,
    sizes: Mapping[str, int],
    counts: NDArray[np.int64],
    noise: NoiseSource | None = None,
    *,
    budget: Fraction = BUDGET,
) -> Iterator[Engine]:
    """An engine on records with given counts, with its ledger in `folder`."""
    schema = schema_of(sizes)
    source = KnownTable(schema, records_of(counts))
    with open_ledger(folder / "rows.ledger") as ledger:
        gate = open_table(ledger, schema, budget, source, SystemNoise() if noise is None else noise)
        yield Engine({TABLE: ServedTable(schema, DEFAULT, gate)})
