"""Holders in memory, behind the ports of synthesis: they tell noisy numbers and add up their costs.

`RowsHolder` is one holder of a network. `SummedHolders` is all of them as one measurer of the
method `pairwise`: every count is the sum of the holders' own noisy counts, so that its noise is a
sum of independent variables, and every score is the sum of the holders' own.

Neighbours differ by one row added or removed. Noise is a textbook generator's, for comparisons.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from accountant.exact.choices import Contingency, grid_scores, sensitivity
from benchmarks.federation_seed import N_BYTES, Floats, Holder, Sent
from cube.query import Partition
from cube.statistic import Choice, Score
from synthesis import Candidate, Column, KnownEstimates, NoiseCost, Sketch, TableEstimate
from synthesis.buckets import Buckets, GroupedEstimate
from synthesis.choice import GAUSSIAN, LAPLACE
from synthesis.tables import estimated_total

N_RECORDS_MAX: Final = 100_000  # a public bound, of the sensitivity of information


class RowsHolder:
    """One holder of rows: a `ChoiceMeasurer`.

    Parameters
    ----------
    holder : Holder
        Its exact counts, which stay here.
    columns : sequence of Column
    rng : numpy.random.Generator
    """

    def __init__(self, holder: Holder, columns: Sequence[Column], rng: np.random.Generator) -> None:
        self._holder = holder
        self._places = {column.name: place for place, column in enumerate(columns)}
        self._rng = rng
        self.spent = Fraction(0)
        self.n_bytes = 0
        self.n_rounds = 0

    def choose(self, choice: Choice, budget: Fraction) -> int:
        """A candidate by the exponential mechanism, with the scores of the accountant."""
        self._told(budget, 1)
        scores = np.array([self._score(choice, place) for place in range(len(choice.candidates))])
        moved = sensitivity(choice.score, N_RECORDS_MAX)
        weighed = float(budget) * scores / (2 * moved)
        return int(np.argmax(weighed + self._rng.gumbel(size=scores.size)))

    def tables(self, views: Sequence[tuple[Partition, ...]], budget: Fraction) -> list[Floats]:
        """Noisy counts of the classes of views."""
        exact = [self._counts(one) for one in views]
        self._told(budget * len(exact), sum(one.size for one in exact))
        return [one + self._rng.laplace(0.0, 1 / float(budget), one.shape) for one in exact]

    def _told(self, budget: Fraction, n_numbers: int) -> None:
        self.spent += budget
        self.n_bytes += N_BYTES * n_numbers
        self.n_rounds += 1

    def _score(self, choice: Choice, place: int) -> float:
        candidate = choice.candidates[place]
        views = [choice.views[one] for one in (candidate.child, *candidate.parents)]
        counts = self._counts(views)
        return score_of(choice.score, counts.reshape(counts.shape[0], -1))

    def _counts(self, views: Sequence[Partition]) -> Floats:
        """Exact counts, with an axis for each view."""
        scope = [self._places[view.axes[0]] for view in views]
        in_order = tuple(sorted(scope))
        found = self._holder.counts(in_order).transpose([in_order.index(one) for one in scope])
        for axis, view in enumerate(views):
            if not np.array_equal(view.labels, np.arange(found.shape[axis])):
                whole = np.zeros((view.n_groups, *np.delete(found.shape, axis)))
                np.add.at(whole, view.labels, np.moveaxis(found, axis, 0))
                found = np.moveaxis(whole, 0, axis)
        return found


def score_of(score: Score, counts: Floats) -> float:
    """The accountant's score of a table of child by parents, in its units; R by floats."""
    if score is Score.DISTANCE:
        n = max(counts.sum(), 1.0)
        independent = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
        return float(np.abs(counts - independent).sum() / 2 * sensitivity(score, 1) / 2)
    child, parents = np.nonzero(counts)
    exact = counts[child, parents].astype(np.int64)
    return float(grid_scores(score, [Contingency(child, parents, exact)])[0])


def summed_cost(n_holders: int, *, gaussian: bool = False) -> NoiseCost:
    """The noise of a sum of counts with independent noise, each at the whole budget.

    Notes
    -----
    The mean magnitude of a sum of `M` Laplace variables of scale 1 is
    ``2 M binom(2 M, M) / 4**M``: 1, 1.5, 1.875 for 1, 2, 3. Gaussian deviations
    grow by a square root.
    """
    return (GAUSSIAN if gaussian else LAPLACE).of_holders(n_holders)


class SummedHolders:
    """All holders as one `TableMeasurer`.

    Parameters
    ----------
    holders : sequence of Holder
    columns : sequence of Column
    rng : numpy.random.Generator
    gaussian : bool
        Budgets are squares of mu, and noise is Gaussian; by default it is Laplace noise.

    Notes
    -----
    The score of a pair is the sum over holders of the distance of each holder's table from a
    reference of its own, and of the distance of the sum of these references from independence:
    together never less than the distance of the sum of all tables. A holder's reference is the
    product of its own noisy columns, drawn towards those of all holders as far as noise explains
    the difference (the positive part of the estimator of James and Stein). Where holders are alike
    it is the holder's part of what independence of all rows gives.
    """

    def __init__(
        self,
        holders: Sequence[Holder],
        columns: Sequence[Column],
        rng: np.random.Generator,
        *,
        gaussian: bool = False,
    ) -> None:
        self._holders = holders
        self._places = {column.name: place for place, column in enumerate(columns)}
        self._rng = rng
        self._gaussian = gaussian
        self._sizes = np.zeros(len(holders))
        self._totals: dict[str, TableEstimate] = {}
        self._own: dict[str, Floats] = {}  # each holder's noisy counts of a column's levels
        self._prices: dict[tuple[str, ...], float] = {}
        self._tables: dict[tuple[str, ...], TableEstimate | GroupedEstimate] = {}
        self.spent = 0.0
        self._n_numbers = 0
        self._n_rounds = 0

    @property
    def sent(self) -> Sent:
        """What all holders have sent."""
        return Sent(N_BYTES * self._n_numbers * len(self._holders), self._n_rounds)

    def known(self) -> KnownEstimates:
        """The estimates from what was measured."""
        found = list(self._tables.values())
        tables = tuple(one for one in found if isinstance(one, TableEstimate))
        grouped = tuple(one for one in found if isinstance(one, GroupedEstimate))
        counted = [*tables, *(one.table for one in grouped), *self._totals.values()]
        return KnownEstimates(tables, grouped, estimated_total(counted) if counted else None)

    def count(self, budget: float) -> None:
        """Count the rows of each holder."""
        self._n_rounds += 1
        exact = np.array([[len(one.rows)] for one in self._holders], dtype=np.float64)
        noisy = self._told(exact, budget, budget)
        self._sizes = np.maximum(noisy.ravel(), 1.0)
        total = np.array([float(noisy.sum())])
        self._totals["count"] = TableEstimate(("count",), total, self._variance(budget))

    def one_ways(self, budgets: Mapping[str, float]) -> None:
        """Count the levels of columns; what is counted again has the noise of all it cost."""
        self._n_rounds += 1
        for name, budget in budgets.items():
            scope = (name,)
            price = self._prices.get(scope, 0.0) + budget
            exact = np.array([one.counts((self._places[name],)) for one in self._holders])
            self._own[name] = self._told(exact, budget, price)
            self._prices[scope] = price
            summed = self._own[name].sum(axis=0)
            self._tables[scope] = TableEstimate(scope, summed, self._variance(price))

    def scores(self, sketch: Sketch, budget: float) -> Floats:
        """The noisy scores of the sketch's candidates."""
        self._n_rounds += 1
        share = budget / len(sketch.candidates)
        found = []
        for candidate in sketch.candidates:
            references = self._references(candidate)
            exact = np.array([self._grouped(one, candidate) for one in self._holders])
            distances = np.abs(exact - np.rint(references)).sum(axis=(1, 2))
            told = float(self._told(distances, share, share).sum())
            between = references.sum(axis=0) - sketch.reference(candidate)
            found.append(told + float(np.abs(between).sum()))
        return np.array(found)

    def pairs(self, budgets: Mapping[Candidate, float]) -> None:
        """Count the cells of tables of pairs."""
        self._n_rounds += 1
        for candidate, budget in budgets.items():
            scope = candidate.scope
            exact = np.array([self._grouped(one, candidate) for one in self._holders])
            summed = self._told(exact, budget, budget).sum(axis=0)
            table = TableEstimate(scope, summed, self._variance(budget))
            is_plain = all(one.is_plain for one in candidate.groups)
            self._tables[scope] = table if is_plain else GroupedEstimate(candidate.groups, table)

    def _references(self, candidate: Candidate) -> Floats:
        """A table for each holder: the product of its columns, drawn towards those of all."""
        first, second = (
            self._columns(name, groups)
            for name, groups in zip(candidate.scope, candidate.groups, strict=True)
        )
        found: Floats = np.einsum("hi,hj,h->hij", first, second, 1 / self._sizes)
        return found

    def _columns(self, name: str, groups: Buckets) -> Floats:
        """Each holder's counts of a column's groups, (n_holders, n_groups), with its own sum."""
        own = groups.summed(self._own[name], 1)
        noise = float(groups.labels.size * self._variance(self._prices[(name,)])) / len(own)
        whole = np.maximum(own.sum(axis=0), 0.0)
        of_all = np.outer(self._sizes, whole / max(float(whole.sum()), 1.0))
        apart = own - of_all
        squares = np.maximum((apart**2).sum(axis=1), noise)
        drawn = np.maximum(of_all + (1 - noise / squares)[:, np.newaxis] * apart, 0.0)
        sums = np.maximum(drawn.sum(axis=1, keepdims=True), 1.0)
        return np.asarray(drawn * self._sizes[:, np.newaxis] / sums)

    def _grouped(self, holder: Holder, candidate: Candidate) -> Floats:
        counts = holder.counts(tuple(self._places[name] for name in candidate.scope))
        for axis, groups in enumerate(candidate.groups):
            counts = groups.summed(counts, axis)
        return counts

    def _told(self, exact: Floats, budget: float, price: float) -> Floats:
        """What each holder tells, for a budget, with the noise of all that was paid for it."""
        self.spent += budget
        self._n_numbers += exact[0].size
        if self._gaussian:
            return exact + self._rng.normal(0.0, 1 / math.sqrt(price), exact.shape)
        return exact + self._rng.laplace(0.0, 1 / price, exact.shape)

    def _variance(self, price: float) -> Floats:
        """Of a sum over all holders."""
        one = 1 / price if self._gaussian else 2 / price**2
        return np.array(len(self._holders) * one)
