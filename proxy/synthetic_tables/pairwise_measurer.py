"""Measures what the pairwise method asks for, through the gate.

The method decides what to measure; the spending decides what it costs and whether it is allowed. If
others exhaust the table's budget meanwhile, buying stops, and the synthetic table is made from what
is known.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from cube.block import Partition, QueryBlock
from cube.query import counting
from cube.refusals import BudgetExhausted, LimitReached
from cube.statistic import Distance
from proxy.synthetic_tables.spending import LaplaceSpending, product_partition
from proxy.tables.private_table import ServedTable
from synthesis.known import KnownEstimates
from synthesis.sketch import Candidate, Sketch
from synthesis.tables import Column, Floats

COUNTED: Final = 0.05  # of the whole, once the rows are counted
ONE_WAYS: Final = 0.2
SCORED: Final = 0.5
PAIRS: Final = 0.8


class GateMeasurer:
    """Measures for `synthesis.pairwise`, through one table's gate.

    Parameters
    ----------
    spending : LaplaceSpending
    columns : sequence of Column
    """

    def __init__(self, spending: LaplaceSpending, columns: Sequence[Column]) -> None:
        self._spending = spending
        self._columns = tuple(columns)
        self._levels = {c.name: np.arange(c.size) for c in columns}
        self.stopped: str | None = None

    def known(self) -> KnownEstimates:
        """The estimates from the current history."""
        return known_now(self._spending.table, self._columns)

    def count(self, budget: float) -> None:
        """Count the rows."""
        self._step("counting rows", 0.0)
        self._buy({None: budget})

    def one_ways(self, budgets: Mapping[str, float]) -> None:
        """Count the levels of columns."""
        self._step("measuring columns", COUNTED)
        self._buy({product_partition((name,), self._levels): one for name, one in budgets.items()})

    def scores(self, sketch: Sketch, budget: float) -> Floats:
        """Noisy distances of tables from independence; zeros once buying has stopped."""
        self._step("scoring pairs", ONE_WAYS)
        candidates = sketch.candidates
        asked = []
        for candidate in candidates:
            reference = np.rint(sketch.reference(candidate)).astype(np.int64)
            block = QueryBlock(counting(), _partition(candidate))
            asked.append(Distance(block, tuple(reference.ravel().tolist())))
        told: list[tuple[float, ...]] = []
        self._pay(lambda: told.append(self._spending.ask(asked, budget / len(candidates))))
        return np.array(told[0]) if told else np.zeros(len(candidates))

    def pairs(self, budgets: Mapping[Candidate, float]) -> None:
        """Count the cells of tables of pairs."""
        self._step("measuring pairs", SCORED)
        self._buy({_partition(candidate): one for candidate, one in budgets.items()})
        self._step("fitting", PAIRS)

    def _buy(self, budgets: Mapping[Partition | None, float]) -> None:
        self._pay(lambda: self._spending.buy(budgets))

    def _pay(self, purchase: Callable[[], None]) -> None:
        if self.stopped is not None:
            return
        try:
            purchase()
        except (BudgetExhausted, LimitReached) as refusal:
            if not self._spending.spent:
                raise
            self.stopped = refusal.message  # others have spent the budget meanwhile

    def _step(self, name: str, done: float) -> None:
        self._spending.step(name, done)


def _partition(candidate: Candidate) -> Partition:
    named = zip(candidate.scope, candidate.groups, strict=True)
    return product_partition(candidate.scope, {name: one.labels for name, one in named})


def known_now(table: ServedTable, columns: Sequence[Column]) -> KnownEstimates:
    """The history's estimates for some columns, and the statistics released beside it."""
    snapshot = table.snapshot()
    told = (counts for one in snapshot.charges.released for counts in one.counts)
    return KnownEstimates.from_history(snapshot.history, columns, told)
