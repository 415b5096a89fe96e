"""What generated statements are asked of: engines on neighbouring tables, and DuckDB."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from accountant.gate.release import Noisy, Release
from accountant.ledger.entries import Charge
from accountant.ledger.entry_json import write
from accountant.ledger.history.table_history import TableHistory
from accountant.noise.lattice_noise import GaussianNoise, LatticeNoise, NoiseSource
from accountant.source import ReadRows, Source
from planner.measuring.candidates import Strategy
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


@dataclass
class MovedNoise:
    """What one engine releases, and the noise of another that releases the same.

    The noise of the neighbour is what makes its noisy values those of the first engine. Whatever
    follows a charge may depend on the noisy values, and on nothing else that was read: then the two
    engines do all alike. `missed` is the number of its charges that the ledger
    of the first does not hold in the same words.
    """

    kept: list[tuple[tuple[str, str], Noisy]] = field(default_factory=list)
    missed: int = 0

    def record(self, charge: Charge, values: Noisy) -> Noisy:
        self.kept.append((write(charge), values))
        return values

    def replay(self, charge: Charge, own: Noisy) -> Noisy:
        if self.kept and self.kept[0][0] == write(charge):
            return self.kept.pop(0)[1]
        self.missed += 1
        return own


@dataclass(frozen=True)
class MovedRelease:
    """A gate's release whose values go through a `MovedNoise`; it reads what the gate's reads."""

    release: Release
    through: Callable[[Charge, Noisy], Noisy]

    def noisy_values(self, source: Source | ReadRows, charge: Charge, known: TableHistory) -> Noisy:
        return self.through(charge, self.release.noisy_values(source, charge, known))


@dataclass(frozen=True)
class Pair:
    """Two engines that are asked the same, on tables that differ in one record.

    Parameters
    ----------
    one, other : Engine
    sources : pair of KnownTable
        What they read.
    moved : MovedNoise, optional
        If their noisy values are the same; otherwise their noise is.
    """

    one: Engine
    other: Engine
    sources: tuple[KnownTable, KnownTable]
    moved: MovedNoise | None = None


@dataclass(frozen=True)
class FuzzWorld:
    """The engines of one seed.

    Parameters
    ----------
    same_noise : Pair
        For statements whose decisions must not even depend on noisy answers.
    same_answers : Pair
        For those whose purchases follow noisy answers, and for some of the others.
    n_records : int
    is_noisy : bool
    """

    same_noise: Pair
    same_answers: Pair
    n_records: int
    is_noisy: bool


@contextmanager
def fuzz_world(seed: int, folder: Path) -> Iterator[FuzzWorld]:
    """A seed's engines: how many records, which strategy and whether noise are the seed's too."""
    n_records = N_RECORDS[seed % len(N_RECORDS)]
    strategy = STRATEGIES[seed % len(STRATEGIES)]
    is_noisy = seed % 7 == 3
    rows = _rows(n_records)
    with ExitStack() as stack:

        def pair(name: str) -> Pair:
            tables, engines = [], []
            for place, held in enumerate((rows, neighbour(rows, seed))):
                own = folder / f"{seed}-{name}-{place}"
                own.mkdir()
                table = KnownTable(world.SCHEMA, held)
                noise: NoiseSource = SameNoise(seed) if is_noisy else NoNoise()
                engine = world.patients_engine(own, table, noise, strategy=strategy)
                engines.append(stack.enter_context(engine))
                tables.append(table)
            return Pair(engines[0], engines[1], (tables[0], tables[1]))

        yield FuzzWorld(pair("noise"), _with_same_answers(pair("answers")), n_records, is_noisy)


def _with_same_answers(pair: Pair) -> Pair:
    """The pair, with the noise of the second moved."""
    moved = MovedNoise()
    for engine, through in ((pair.one, moved.record), (pair.other, moved.replay)):
        gate = engine._tables[world.SCHEMA.table].gate
        gate._release = MovedRelease(gate._release, through)  # type: ignore[assignment]  # in its place
    return replace(pair, moved=moved)


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
