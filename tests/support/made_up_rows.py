"""Rows made up for tests of synthesis: exact tables of them, and a measurer that adds noise.

The noise is a textbook generator's, good for made-up rows only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cube.query import Scope
from synthesis.buckets import GroupedEstimate
from synthesis.known import KnownEstimates
from synthesis.sketch import Candidate, Sketch
from synthesis.tables import Column, TableEstimate

NEARLY_EXACT = 1e-6  # a variance: noise a thousandth of a row


class MadeUpRows:
    """Rows in plain sight; a `Measurer` of pure epsilon that remembers what was bought.

    Parameters
    ----------
    columns : sequence of Column
    rows : (n_rows, n_columns) ndarray of int
    seed : int
    known : sequence of scopes
        What is known nearly exactly before anything is bought.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        rows: NDArray[np.int64],
        seed: int = 0,
        known: Sequence[Scope] = (),
    ) -> None:
        self.columns = tuple(columns)
        self.rows = rows
        self.spent = 0.0
        self.one_ways_bought: dict[str, float] = {}
        self.pairs_bought: dict[Scope, float] = {}
        self.counts_bought = 0.0
        self._rng = np.random.default_rng(seed)
        self._known = KnownEstimates(
            tuple(self.nearly_exact(*known)), n_rows=len(rows) if known else None
        )

    def exact(self, *scope: str) -> NDArray[np.float64]:
        """The counts of a few columns' cells."""
        return counted(self.columns, self.rows, *scope)

    def nearly_exact(self, *scopes: Scope) -> list[TableEstimate]:
        """Their counts, said to be nearly free of noise."""
        return [
            TableEstimate(scope, self.exact(*scope), np.array(NEARLY_EXACT)) for scope in scopes
        ]

    def known(self) -> KnownEstimates:
        return self._known

    def count(self, budget: float) -> None:
        self.spent += budget
        self.counts_bought += budget
        n_rows = max(0.0, len(self.rows) + self._rng.laplace(0.0, 1 / budget))
        self._known = replace(self._known, n_rows=n_rows)

    def one_ways(self, budgets: Mapping[str, float]) -> None:
        self.one_ways_bought = dict(budgets)
        bought = [self._noisy((name,), self.exact(name), price) for name, price in budgets.items()]
        self._known = replace(self._known, tables=(*self._known.tables, *bought))

    def scores(self, sketch: Sketch, budget: float) -> NDArray[np.float64]:
        self.spent += budget
        distances = [
            np.abs(self._over_groups(one) - sketch.reference(one)).sum()
            for one in sketch.candidates
        ]
        return np.array(distances) + self._rng.laplace(0.0, len(distances) / budget, len(distances))

    def pairs(self, budgets: Mapping[Candidate, float]) -> None:
        self.pairs_bought = {one.scope: price for one, price in budgets.items()}
        bought = [
            GroupedEstimate(one.groups, self._noisy(one.scope, self._over_groups(one), price))
            for one, price in budgets.items()
        ]
        self._known = replace(self._known, grouped=(*self._known.grouped, *bought))

    def _over_groups(self, candidate: Candidate) -> NDArray[np.float64]:
        names = [column.name for column in self.columns]
        cells = np.zeros(len(self.rows), dtype=np.int64)
        for name, groups in zip(candidate.scope, candidate.groups, strict=True):
            cells = cells * groups.n_buckets + groups.labels[self.rows[:, names.index(name)]]
        counts = np.bincount(cells, minlength=candidate.n_cells).astype(np.float64)
        return counts.reshape([groups.n_buckets for groups in candidate.groups])

    def _noisy(self, scope: Scope, exact: NDArray[np.float64], price: float) -> TableEstimate:
        self.spent += price
        noise = self._rng.laplace(0.0, 1 / price, exact.shape)
        return TableEstimate(scope, exact + noise, np.array(2 / price**2))


def counted(
    columns: Sequence[Column], rows: NDArray[np.integer[Any]], *scope: str
) -> NDArray[np.float64]:
    """How many rows are in each cell of a few columns."""
    places = [[column.name for column in columns].index(name) for name in scope]
    table = np.zeros([columns[place].size for place in places])
    np.add.at(table, tuple(rows[:, place] for place in places), 1.0)
    return table


def distance(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """The total variation distance of two tables of counts."""
    return float(np.abs(first / first.sum() - second / second.sum()).sum() / 2)
