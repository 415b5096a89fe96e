"""What a dashboard on a growing table costs a unit: thirty tiles, refreshed daily for sixty days.

    python -m benchmarks.growing [--quick]

A million orders of customers with up to twenty, 180 days of them, the last sixty of which come one
by one. Every day the horizon moves, the tiles are refreshed, and analysts ask ten statements
(`benchmarks/orders.py`), through SQL, planner, gate and ledger as shipped. Beside it stands what
the same statements cost with Laplace noise of the same weights, in two ways:

* everything bought anew: each statement pays its price whenever it is asked, and prices add up;
* an exact-match cache with block composition: what is asked twice in a day is free, what is asked
  on another day is about more rows and bought anew, and a cell pays for what is about it alone.
  That cost is counted on the cells of the first day, exactly; others may pay more.
"""

import tempfile
import time
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from accountant.cost.history_cost import CostState
from accountant.gate.opening import open_table
from accountant.ledger.entries import Tally
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from benchmarks.orders import N_DAYS, N_ORDERS, day_at, of_analysts, tiles, write_orders
from benchmarks.report import Bar, progress, run, wants_quick
from cube.encoding import fingerprint
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Weight
from cube.query import LinearQuery, Partition, QueryBlock, Term
from cube.schema import Schema
from planner.measuring.weights import weight_for
from proxy.api.requests import QueryRequest
from proxy.config.settings import load
from proxy.engine.answers.results import AnsweredPart
from proxy.engine.engine import Engine
from proxy.engine.usage import UsageTallies
from proxy.sources.opening import GrowingFile
from proxy.tables.private_table import ServedTable

N_REFRESHED = 60  # days
N_OF_ANALYSTS = 10  # statements a day
SHARE_OF_CACHE_MAX = 1 / 3


class Beside(UsageTallies):
    """What the same statements would have cost elsewhere: bought anew, and with a cache.

    Parameters
    ----------
    schema : Schema
        Of the whole table.
    """

    def __init__(self, schema: Schema) -> None:
        super().__init__()
        self._schema = schema
        self._day = 0
        self._anew = 0
        self._price_of: dict[Tally, int] = {}  # of all statements so far, anew
        self._bought: dict[tuple[int, str], int] = {}  # the weight of rows, by day
        self._on_first_day: dict[str, tuple[QueryBlock, int]] = {}  # and of what is left of them

    def begin_day(self, day: int) -> None:
        """From now on nothing that was bought is about all rows so far."""
        self._day = day

    def add(self, schema: Schema, analyst: str, parts: Iterable[AnsweredPart]) -> Tally:
        """Count the answers of a statement."""
        parts = list(parts)
        tally = super().add(schema, analyst, parts)
        alone: dict[str, tuple[QueryBlock, int]] = {}  # the rows of this statement, by name
        for part in parts:
            for found in part.aggregates:
                for block in found.aggregate.blocks:
                    row, multiplier = block.primitive
                    units = weight_for(found.aggregate.target, multiplier).units
                    name = fingerprint(row)
                    if not row.query.is_constant:
                        alone[name] = (row, max(units, alone.get(name, (row, 0))[1]))
        self._price_of[tally] = self._cost(alone)
        self._anew += self._price_of[tally]
        for name, (row, units) in alone.items():
            self._buy(schema, name, row, units)
        return tally

    def add_again(self, table: str, tally: Tally) -> None:
        """Count answers that are given again as they are."""
        super().add_again(table, tally)
        self._anew += self._price_of[tally]

    @property
    def anew(self) -> Fraction:
        """The sum of the prices of all statements, for a unit."""
        return Fraction(self._anew, UNITS_PER_EPSILON)

    @property
    def cached(self) -> Fraction:
        """The largest cost of a cell of the first day, for a unit."""
        return Fraction(self._cost(self._on_first_day), UNITS_PER_EPSILON)

    def _cost(self, rows: Mapping[str, tuple[QueryBlock, int]]) -> int:
        plan = [PlannedMeasurement(block, Weight(units)) for block, units in rows.values()]
        state = CostState(rows_per_unit=self._schema.rows_per_unit_max).charged(plan)
        return state.table_cost().units

    def _buy(self, schema: Schema, name: str, row: QueryBlock, units: int) -> None:
        key = (self._day, name)
        more = units - self._bought.get(key, 0)
        if more <= 0:
            return
        self._bought[key] = units
        left = on_first_day(row, schema)
        if left is not None:
            name = fingerprint(left)
            _, held = self._on_first_day.get(name, (left, 0))
            self._on_first_day[name] = (left, held + more)


def on_first_day(row: QueryBlock, schema: Schema) -> QueryBlock | None:
    """What is left of rows on the first level of time; None if that is nothing."""
    axis = str(schema.grows)
    terms = []
    for term in row.query.terms:
        along = [one for one in term.factors if axis in one.axes]
        others = tuple(one for one in term.factors if axis not in one.axes)
        (first,) = {int(one.values[0]) for one in along} or {1}
        terms.append(Term(term.scale * first, others))
    query, partition = LinearQuery(tuple(terms)), row.partition
    if partition is not None and axis in partition.axes:
        labels = np.asarray(partition.labels.take(0, axis=partition.axes.index(axis)))
        found, numbers = np.unique(labels[labels >= 0], return_inverse=True)
        axes = tuple(one for one in partition.axes if one != axis)
        if not found.size:
            return None
        left = np.full(labels.shape, -1, dtype=np.int64)
        left[labels >= 0] = numbers
        partition = Partition(axes, left) if axes else None
    return None if query.is_constant else QueryBlock(query, partition)


def main() -> None:
    """Run the benchmark and print its report."""
    quick = wants_quick(__doc__ or "")
    threadpool_limits(limits=1)  # as in the served process
    figures, bars = lived(N_ORDERS // 10, 24, 3) if quick else lived(N_ORDERS, N_REFRESHED, 1)
    run(figures, bars)


def lived(n_orders: int, n_days: int, every: int) -> tuple[dict[str, object], list[Bar]]:
    """The last days of the table, one after the other; one in so many statements is asked."""
    first = N_DAYS - n_days + 1
    rng = np.random.default_rng(19)
    with tempfile.TemporaryDirectory() as folder:
        (table,) = load(write_orders(Path(folder), n_orders, first)).tables
        with open_ledger(Path(folder) / "growing.ledger") as ledger:
            source = GrowingFile(table.schema, table.read_from, ledger.key)
            gate = open_table(ledger, table.schema, table.funds, source, SystemNoise())
            gate.advance(first, "owner")
            served = ServedTable(table.schema, table.default, gate, table.strategy, sums=table.sums)
            engine = Engine({table.schema.table: served})
            beside = Beside(table.schema)
            engine.usage = beside
            days = []
            for readable in range(first, N_DAYS + 1):
                gate.advance(readable, "owner")
                beside.begin_day(readable)
                today = day_at(readable - 1)
                asked = [*tiles(today), *of_analysts(today, rng, N_OF_ANALYSTS)]
                slowest, n_free = _asked(engine, asked[::every])
                spent = gate.history.units_spent / UNITS_PER_EPSILON
                days.append((spent, float(beside.cached), float(beside.anew), n_free, slowest))
                progress(f"{today}: {days[-1]}, {len(gate.history.measurements)} measurements")
    spent, cached, anew, _, _ = days[-1]
    share = spent / cached
    bar = SHARE_OF_CACHE_MAX
    figures: dict[str, object] = {
        "n_orders": n_orders,
        "n_days": n_days,
        "epsilon per unit": spent,
        "epsilon per unit of an exact-match cache": cached,
        "epsilon per unit of everything bought anew": anew,
        "days: epsilon, of the cache, bought anew, free statements, slowest in seconds": days,
    }
    name = "epsilon per unit over an exact-match cache with block composition"
    return figures, [Bar(name, share, bar, share <= bar)]


def _asked(engine: Engine, statements: list[str]) -> tuple[float, int]:
    """The slowest of some statements, in seconds, and how many of them cost nothing."""
    slowest, n_free = 0.0, 0
    for sql in statements:
        begun = time.perf_counter()
        receipt = engine.answer(QueryRequest(sql=sql)).receipt
        slowest = max(slowest, time.perf_counter() - begun)
        n_free += receipt is not None and not receipt.epsilon_spent
    return slowest, n_free


if __name__ == "__main__":
    main()
