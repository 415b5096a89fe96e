"""What generated statements are asked of: engines on neighbouring tables, and DuckDB."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from accountant.noise.gaussian import GaussianNoise
from accountant.noise.laplace import LatticeNoise, NoiseSource
from planner.measuring.strategy import Strategy
from proxy.engine.engine import Engine
from tests.sql import world
from tests.sql.fuzz_rows import add_levels
from tests.support.fakes import KnownTable, NoNoise

N_RECORDS = (2000, 2000, 2000, 40, 1, 0)
STRATEGIES = (Strategy.AUTO, Strategy.QUERY, Strategy.AUTO, Strategy.CELLS, Strategy.DYADIC)


class SameNoise:
    """Noise that is the same for two engines that ask for the same draws."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def discrete_laplace(self, noise: LatticeNoise, size: int) -> tuple[int, ...]:
        drawn = self._generator.laplace(scale=noise.scale_in_steps, size=size)
        return tuple(round(value) for value in drawn.tolist())

    def refined_laplace(
        self, coarse: LatticeNoise, fine: LatticeNoise, drawn: Sequence[int]
    ) -> tuple[int, ...]:
        share = fine.scale_in_steps / coarse.scale_in_steps
        return tuple(round(value * share) for value in drawn)

    def discrete_gaussian(self, noise: GaussianNoise, size: int) -> tuple[int, ...]:
        drawn = self._generator.normal(scale=noise.scale_in_steps, size=size)
        return tuple(round(value) for value in drawn.tolist())


@dataclass(frozen=True)
class FuzzWorld:
    """The engines of one seed.

    Parameters
    ----------
    one, other : Engine
        On tables that differ in one record. They are asked the same.
    alone : Engine
        On the table of `one`, for what the others are not asked.
    sources : pair of KnownTable
        What `one` and `other` read.
    n_records : int
    is_noisy : bool
    """

    one: Engine
    other: Engine
    alone: Engine
    sources: tuple[KnownTable, KnownTable]
    n_records: int
    is_noisy: bool


@contextmanager
def fuzz_world(seed: int, folder: Path) -> Iterator[FuzzWorld]:
    """A seed's engines: how many records, which strategy and whether noise are the seed's too."""
    n_records = N_RECORDS[seed % len(N_RECORDS)]
    strategy = STRATEGIES[seed % len(STRATEGIES)]
    is_noisy = seed % 7 == 3
    rows = _rows(n_records)
    tables = [KnownTable(world.SCHEMA, held) for held in (rows, neighbour(rows, seed), rows)]
    with ExitStack() as stack:
        engines = []
        for place, table in enumerate(tables):
            own = folder / f"{seed}-{place}"
            own.mkdir()
            noise: NoiseSource = SameNoise(seed) if is_noisy else NoNoise()
            engine = world.patients_engine(own, table, noise, strategy=strategy)
            engines.append(stack.enter_context(engine))
        one, other, alone = engines
        yield FuzzWorld(one, other, alone, (tables[0], tables[1]), n_records, is_noisy)


def neighbour(rows: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """The same table with one record less, or one more: any, or the last of all levels."""
    generator = np.random.default_rng(seed)
    if len(rows) and seed % 2:
        return np.delete(rows, int(generator.integers(len(rows))), axis=0)
    sizes = [axis.size for axis in world.SCHEMA.axes]
    is_extreme = seed % 4 == 0
    record = [size - 1 if is_extreme else int(generator.integers(size)) for size in sizes]
    return np.vstack((rows.reshape(-1, len(sizes)), [record])).astype(np.int64)


@cache
def oracle(n_records: int) -> duckdb.DuckDBPyConnection:
    """The records in DuckDB."""
    database = world.database(_rows(max(n_records, 1)))
    if n_records == 0:
        database.execute("DELETE FROM patients")
    add_levels(database)
    return database


@cache
def _rows(n_records: int) -> NDArray[np.int64]:
    return world.positions(max(n_records, 1))[:n_records]
