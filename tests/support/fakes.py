"""Fakes at the gate's ports: a known table, known noise, things that fail, things that die."""

import hashlib
import hmac
import os
import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from accountant.gate.gate import CellCounts, Source
from accountant.grouping import Grouping
from accountant.ledger.entries import Body, TableBody
from accountant.ledger.history.table_history import TableHistory
from accountant.ledger.ledger import Ledger
from accountant.ledger.stores.key_file import fingerprint_key, key_beside
from accountant.ledger.stores.sqlite_store import SqliteStore
from accountant.noise.lattice_noise import GaussianNoise, LatticeNoise, NoiseSource, SystemNoise
from accountant.source import UnitCells
from cube.schema import Schema
from tests.support.groupings import counted_levels


class KnownTable:
    """A `Source` over records given as level positions, which remembers what was read.

    Parameters
    ----------
    schema : Schema
        Whose axes the columns of `records` are, in order.
    records : (n_records, n_axes) ndarray of int64
        Level positions.
    """

    def __init__(self, schema: Schema, records: NDArray[np.int64]) -> None:
        self.schema = schema
        self.records = records
        self.scopes_read: list[tuple[str, ...]] = []

    def fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - a protocol
        return hmac.new(key, self.records.tobytes(), hashlib.sha256).hexdigest()

    def rows_fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - a protocol
        places = sorted(
            range(len(self.schema.axes)), key=lambda place: self.schema.axes[place].name
        )
        rows = sorted(self.records[:, places].tolist())
        return hmac.new(key, repr(rows).encode(), hashlib.sha256).hexdigest()

    def measure(self, grouping: Grouping) -> CellCounts:
        self.scopes_read.append(grouping.scope)
        if not grouping.scope:
            return CellCounts((), np.array([len(self.records)], dtype=np.int64))
        columns, _ = self._counted(grouping)
        cells, counts = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True)
        levels = tuple(np.ascontiguousarray(column) for column in cells.T)
        return CellCounts(levels, counts.astype(np.int64))

    def measure_units(self, grouping: Grouping) -> UnitCells:
        """Every record is a unit."""
        levels, is_counted = self._counted(grouping)
        units = np.flatnonzero(is_counted)
        return UnitCells(levels, units, units, np.zeros_like(units), np.ones_like(units))

    def _counted(
        self, grouping: Grouping
    ) -> tuple[tuple[NDArray[np.int64], ...], NDArray[np.bool_]]:
        names = [axis.name for axis in self.schema.axes]
        records = self.records.astype(np.int64)
        levels = [records[:, names.index(name)] for name in grouping.scope]
        return counted_levels(grouping, levels, len(records))


class FailingSource:
    """A `Source` whose first `n_failures` reads fail with a message nobody may see."""

    def __init__(self, source: Source, n_failures: int, message: str) -> None:
        self.source = source
        self.n_failures = n_failures
        self.message = message

    def fingerprint(self, key: bytes, like: str = "") -> str:
        return self.source.fingerprint(key, like)

    def rows_fingerprint(self, key: bytes, like: str = "") -> str:
        return self.source.rows_fingerprint(key, like)

    def measure(self, grouping: Grouping) -> CellCounts:
        counts = self.source.measure(grouping)
        self._fail(counts.counts)
        return counts

    def measure_units(self, grouping: Grouping) -> UnitCells:
        cells = self.source.measure_units(grouping)
        self._fail(cells.units)
        return cells

    def _fail(self, read: NDArray[np.int64]) -> None:
        if self.n_failures > 0:
            self.n_failures -= 1
            raise OSError(f"{self.message} {read.tolist()}")


class NoNoise:
    """A `NoiseSource` for checking arithmetic: every draw is 0."""

    def discrete_laplace(self, noise: LatticeNoise, size: int) -> tuple[int, ...]:  # noqa: ARG002 - a fake
        return (0,) * size

    def refined_laplace(
        self,
        coarse: LatticeNoise,  # noqa: ARG002 - a fake
        fine: LatticeNoise,  # noqa: ARG002 - a fake
        drawn: Sequence[int],
    ) -> tuple[int, ...]:
        return (0,) * len(drawn)

    def discrete_gaussian(self, noise: GaussianNoise, size: int) -> tuple[int, ...]:  # noqa: ARG002 - a fake
        return (0,) * size


class PlantedNoise(SystemNoise):
    """A `NoiseSource` whose fresh draws are known; it refines as the system's does."""

    def __init__(self, planted: int) -> None:
        self.planted = planted

    def discrete_laplace(self, noise: LatticeNoise, size: int) -> tuple[int, ...]:  # noqa: ARG002 - a fake
        return (self.planted,) * size


class BrokenNoise:
    """A `NoiseSource` that cannot draw."""

    def discrete_laplace(self, noise: LatticeNoise, size: int) -> tuple[int, ...]:
        raise RuntimeError(f"no entropy for {size} values of scale {noise.noise_scale}")

    def refined_laplace(
        self, coarse: LatticeNoise, fine: LatticeNoise, drawn: Sequence[int]
    ) -> tuple[int, ...]:
        scales = (coarse.noise_scale, fine.noise_scale)
        raise RuntimeError(f"no entropy to refine {list(drawn)} between {scales}")

    def discrete_gaussian(self, noise: GaussianNoise, size: int) -> tuple[int, ...]:
        raise RuntimeError(f"no entropy for {size} values of scale {noise.noise_scale}")


def die() -> None:
    """End this process as a power cut would: no cleanup, no buffers flushed."""
    os.kill(os.getpid(), signal.SIGKILL)


class DyingSource:
    """A `Source` that calls `before` and `after` around its read."""

    def __init__(
        self, source: Source, before: Callable[[], None], after: Callable[[], None]
    ) -> None:
        self.source = source
        self.before = before
        self.after = after

    def fingerprint(self, key: bytes, like: str = "") -> str:
        return self.source.fingerprint(key, like)

    def rows_fingerprint(self, key: bytes, like: str = "") -> str:
        return self.source.rows_fingerprint(key, like)

    def measure(self, grouping: Grouping) -> CellCounts:
        self.before()
        counts = self.source.measure(grouping)
        self.after()
        return counts

    def measure_units(self, grouping: Grouping) -> UnitCells:
        self.before()
        cells = self.source.measure_units(grouping)
        self.after()
        return cells


class DyingNoise:
    """A `NoiseSource` that calls `after` once it has drawn."""

    def __init__(self, noise: NoiseSource, after: Callable[[], None]) -> None:
        self.noise = noise
        self.after = after

    def discrete_laplace(self, noise: LatticeNoise, size: int) -> tuple[int, ...]:
        drawn = self.noise.discrete_laplace(noise, size)
        self.after()
        return drawn

    def refined_laplace(
        self, coarse: LatticeNoise, fine: LatticeNoise, drawn: Sequence[int]
    ) -> tuple[int, ...]:
        refined = self.noise.refined_laplace(coarse, fine, drawn)
        self.after()
        return refined

    def discrete_gaussian(self, noise: GaussianNoise, size: int) -> tuple[int, ...]:
        drawn = self.noise.discrete_gaussian(noise, size)
        self.after()
        return drawn


class DyingLedger(Ledger):
    """A ledger that calls `before` and `after` around the writing of one type of entry."""

    def __init__(
        self, path: Path, entry: type[Body], before: Callable[[], None], after: Callable[[], None]
    ) -> None:
        store = SqliteStore(path)
        super().__init__(store, fingerprint_key(key_beside(store.path), may_create=True))
        self.entry = entry
        self.before = before
        self.after = after

    def append_each(
        self, table: str, builds: Sequence[Callable[[TableHistory], TableBody | None]]
    ) -> list[int | None]:
        is_fatal = False

        def built(
            build: Callable[[TableHistory], TableBody | None], history: TableHistory
        ) -> TableBody | None:
            nonlocal is_fatal
            body = build(history)
            if isinstance(body, self.entry):
                is_fatal = True
                self.before()
            return body

        found = super().append_each(table, [partial(built, build) for build in builds])
        if is_fatal:
            self.after()
        return found
