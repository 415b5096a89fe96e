"""Measures what a Bayesian network needs, through the gate.

Choices are statistics; tables are counts of partitions that enter the history like any others.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from cube.query import Partition, QueryBlock, counting
from cube.statistic import Choice
from proxy.synthetic_tables.spending import LaplaceSpending, product_partition
from synthesis.tables import Floats

CHOSEN: Final = 0.7  # of the whole, once the network is chosen
BEGUN: Final = 0.05


class NetworkMeasurer:
    """Measures for `synthesis.privbayes`, through one table's gate.

    Parameters
    ----------
    spending : LaplaceSpending
    n_columns : int
        How many columns there are; at most one choice is made for each.
    """

    def __init__(self, spending: LaplaceSpending, n_columns: int) -> None:
        self._spending = spending
        self._n_columns = n_columns
        self._n_chosen = 0

    def choose(self, choice: Choice, budget: Fraction) -> int:
        """The index of the chosen candidate."""
        share = self._n_chosen / self._n_columns
        self._spending.step("choosing the network", BEGUN + (CHOSEN - BEGUN) * share)
        self._n_chosen += 1
        (place,) = self._spending.ask([choice], budget)
        return int(place)

    def tables(self, views: Sequence[tuple[Partition, ...]], budget: Fraction) -> list[Floats]:
        """Noisy counts over the classes of views, with one axis for each view, in its order."""
        self._spending.step("measuring tables", CHOSEN)
        partitions = [_product(of_table) for of_table in views]
        self._spending.buy(dict.fromkeys(partitions, budget))
        return [
            self._counts(partition, of_table)
            for partition, of_table in zip(partitions, views, strict=True)
        ]

    def _counts(self, partition: Partition, views: Sequence[Partition]) -> Floats:
        """The most precise counts in the history for a product of views."""
        history = self._spending.table.snapshot().history
        place = history.most_precise(QueryBlock(counting(), partition))
        if place is None:
            raise RuntimeError("a table that was measured is not in the history")
        values = history[place].values
        n_groups = {view.axes[0]: view.n_groups for view in views}
        counts = values.reshape([n_groups[name] for name in partition.axes])
        return np.transpose(counts, [partition.axes.index(view.axes[0]) for view in views])


def _product(views: Sequence[Partition]) -> Partition:
    labels = {view.axes[0]: view.labels for view in views}
    return product_partition(tuple(sorted(labels)), labels)
