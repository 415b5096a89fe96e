"""The gate as the door that a synthetic table is measured through.

Budgets come as floats of planning; they become whole units, rounded down, so that a synthetic table
never costs more than was asked for. Every purchase is charged on its own. When the budget goes to
others on the way, buying stops, and the table is made from what there is.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Final, TypeVar

import numpy as np

from accountant.limits import Payer
from cube.block import Partition, QueryBlock
from cube.measurement import UNITS_PER_EPSILON, Weight
from cube.query import Scope, counting
from cube.refusals import BudgetExhausted, LimitReached
from cube.statistic import Distance, PlannedStatistic
from proxy.served_table import ServedTable
from proxy.synthesis.request import Step, Watch
from proxy.table_purchases import ask_statistics, buy_tables
from synthesis.known import Known
from synthesis.model import Sketch
from synthesis.tables import Column, Floats

COUNTED: Final = 0.05  # of the whole, once the rows are counted
ONE_WAYS: Final = 0.2
SCORED: Final = 0.5
PAIRS: Final = 0.8

_Key = TypeVar("_Key")


class GateMeasurer:
    """Measures for `synthesis.pairwise`, through one table's gate.

    Parameters
    ----------
    table : ServedTable
    columns : sequence of Column
    payer : Payer
    epsilon : Fraction
        The most that all of it may cost.
    watch : callable
        Told of each step before it is taken.
    """

    def __init__(
        self,
        table: ServedTable,
        columns: Sequence[Column],
        payer: Payer,
        epsilon: Fraction,
        watch: Watch,
    ) -> None:
        self._table = table
        self._columns = tuple(columns)
        self._payer = payer
        self._epsilon = epsilon
        self._watch = watch
        self._levels = {c.name: np.arange(c.size) for c in columns}
        self.spent = Fraction(0)
        self.stopped: str | None = None

    def known(self) -> Known:
        """What the history says now."""
        return known_now(self._table, self._columns)

    def count(self, budget: float) -> None:
        """Count the rows."""
        self._step("counting rows", 0.0)
        self._buy({None: budget})

    def one_ways(self, budgets: Mapping[str, float]) -> None:
        """Count the levels of columns."""
        self._step("measuring columns", COUNTED)
        self._buy({self._partition((name,), self._levels): one for name, one in budgets.items()})

    def scores(self, sketch: Sketch, budget: float) -> Floats:
        """Noisy distances of pairs from independence; zeros once buying has stopped."""
        self._step("scoring pairs", ONE_WAYS)
        pairs = sketch.pairs
        labels = {name: one.labels for name, one in sketch.buckets.items()}
        weights = _weights(dict.fromkeys(pairs, budget / len(pairs)))
        asked = []
        for pair, weight in weights.items():
            reference = np.rint(sketch.reference(pair)).astype(np.int64)
            block = QueryBlock(counting(), self._partition(pair, labels))
            distance = Distance(block, tuple(reference.ravel().tolist()))
            asked.append(PlannedStatistic(distance, weight))
        told: list[tuple[float, ...]] = []

        def ask() -> Fraction:
            values, paid = ask_statistics(
                self._table, asked, self._payer, epsilon_cap=self._epsilon - self.spent
            )
            told.append(values)
            return paid

        if len(asked) == len(pairs):
            self._pay(ask)
        return np.array(told[0]) if told else np.zeros(len(pairs))

    def pairs(self, sketch: Sketch, budgets: Mapping[Scope, float]) -> None:
        """Count the cells of pairs."""
        self._step("measuring pairs", SCORED)
        labels = {name: one.labels for name, one in sketch.buckets.items()}
        self._buy({self._partition(pair, labels): one for pair, one in budgets.items()})
        self._step("fitting", PAIRS)

    def _buy(self, budgets: Mapping[Partition | None, float]) -> None:
        added = _weights(budgets)
        self._pay(
            lambda: buy_tables(
                self._table, added, self._payer, epsilon_cap=self._epsilon - self.spent
            )
        )

    def _pay(self, purchase: Callable[[], Fraction]) -> None:
        if self.stopped is not None:
            return
        try:
            self.spent += purchase()
        except (BudgetExhausted, LimitReached) as refusal:
            if not self.spent:
                raise
            self.stopped = refusal.message  # others have spent what there was when this began

    def _partition(self, scope: Scope, labels: Mapping[str, np.ndarray]) -> Partition:
        """The product of each column's partition."""
        product = np.zeros((1,) * len(scope), dtype=np.int64)
        for axis, name in enumerate(scope):
            of_axis = labels[name].reshape([-1 if one == axis else 1 for one in range(len(scope))])
            product = product * (int(labels[name].max()) + 1) + of_axis
        return Partition(scope, np.ascontiguousarray(product, dtype=np.int64))

    def _step(self, name: str, done: float) -> None:
        self._watch(Step(name, done, self.spent))


def known_now(table: ServedTable, columns: Sequence[Column]) -> Known:
    """What the history of a table says of some columns."""
    with table.held():
        table.estimates([])  # takes in what was measured since somebody looked
        return Known.from_history(table.history, columns)


def _weights(budgets: Mapping[_Key, float]) -> dict[_Key, Weight]:
    """Budgets as weights, rounded down; what is less than a unit is left out."""
    units = {key: int(Fraction(one) * UNITS_PER_EPSILON) for key, one in budgets.items()}
    return {key: Weight(one) for key, one in units.items() if one > 0}
