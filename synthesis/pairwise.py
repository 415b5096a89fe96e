"""The method `pairwise`: measure one-way tables and the pairs that matter, fit, draw.

Only the flow. Measuring is a port: its implementation reads private data and pays for it; this
module sees noisy numbers only. Without a budget, a table is made from earlier estimates alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from cube.query import N_FACTOR_CELLS_MAX, Scope
from synthesis.choice import (
    LAPLACE,
    NoiseCost,
    choose_tables,
    one_way_share,
    score_share,
    shrunk_scores,
)
from synthesis.known import KnownEstimates
from synthesis.model import PairwiseModel, fit_model
from synthesis.sketch import Candidate, Sketch
from synthesis.tables import Column, Floats, all_pairs, expected_l1

TOTAL_SHARE = 0.005  # for counting the rows, where their number is not known
WORTH_ADDING = 0.05  # of a one-way budget: less than this is not worth a purchase
PAIRS_SHARE_MIN = 0.001  # of a budget: what rounding leaves buys nothing
NOISE_LEFT = 0.8  # chosen among .65, .8, 1 on samples of four tables, checked on three others
QUERIED_WEIGHT = 4.0  # of the error of a pair that a workload asks for


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What matters in a table besides the distance of its pairs.

    Parameters
    ----------
    weights : mapping of sorted scope to float
        How much the error of a pair counts; 1 for the others.
    n_cells_max : int
        The most combinations of levels that two columns may have to be counted together.
    score_budget : float
        Kept for the scores of all candidates, whether or not they are worth it; 0 for what a rule
        says (`synthesis.choice.score_share`).
    """

    weights: Mapping[Scope, float] = field(default_factory=dict)
    n_cells_max: int = N_FACTOR_CELLS_MAX
    score_budget: float = 0.0

    @classmethod
    def for_queries(cls, scopes: Sequence[Scope]) -> "Wishes":
        """Pairs whose columns some query needs together count `QUERIED_WEIGHT` times as much."""
        pairs = (pair for scope in scopes for pair in all_pairs(scope))
        return cls(weights=dict.fromkeys(pairs, QUERIED_WEIGHT))


NO_WISHES: Final = Wishes()


class TableMeasurer(Protocol):
    """The only access to private data; what it returns is noisy and paid for.

    Budgets are in the units of the `NoiseCost` with which the tables are planned, and add up. What
    is measured is known from then on.
    """

    def known(self) -> KnownEstimates:
        """The estimates that are known now."""
        ...

    def count(self, budget: float) -> None:
        """Count the rows."""
        ...

    def one_ways(self, budgets: Mapping[str, float]) -> None:
        """Measure one-way tables over levels; a budget is added to what was spent on the table."""
        ...

    def scores(self, sketch: Sketch, budget: float) -> Floats:
        """The noisy distance of each of the sketch's candidates from its reference.

        Parameters
        ----------
        sketch : Sketch
            Its `candidates` are compared with `Sketch.reference`.
        budget : float
            The budget for all scores together.
        """
        ...

    def pairs(self, budgets: Mapping[Candidate, float]) -> None:
        """Measure tables; a budget is added to what was spent on the same table earlier."""
        ...


def measured_model(
    columns: Sequence[Column],
    measurer: TableMeasurer,
    *,
    budget: float,
    wishes: Wishes = NO_WISHES,
    cost: NoiseCost = LAPLACE,
) -> PairwiseModel:
    """Buy what a synthetic table needs, and fit a model to everything that is then known.

    Parameters
    ----------
    columns : sequence of Column
    measurer : TableMeasurer
    budget : float
        The budget of the whole method: positive, never exceeded.
    wishes : Wishes
    cost : NoiseCost
        The noise for a budget.

    Notes
    -----
    `known_model` makes a model from what is known alone, at no cost. It is also the last step here,
    so a table that was bought and one from history alone are made in the same way.
    """
    buy_tables(columns, measurer, budget=budget, wishes=wishes, cost=cost)
    return known_model(columns, measurer.known())


def buy_tables(
    columns: Sequence[Column],
    measurer: TableMeasurer,
    *,
    budget: float,
    wishes: Wishes = NO_WISHES,
    cost: NoiseCost = LAPLACE,
) -> None:
    """Buy what `measured_model` fits a model to; the measurer knows it afterwards."""
    if not (columns and 0 < budget < float("inf")):
        raise ValueError(f"no table can be made of {len(columns)} columns and a budget of {budget}")
    left = budget - wishes.score_budget
    if measurer.known().n_rows is None:
        measurer.count(TOTAL_SHARE * budget)
        left -= TOTAL_SHARE * budget
    wanted = one_way_budgets(columns, measurer.known(), left, cost)
    if wanted:
        measurer.one_ways(wanted)
        left -= sum(wanted.values())
    sketch = known_sketch(columns, measurer.known(), wishes.n_cells_max)
    if sketch.candidates and worth_scoring(left, budget):
        for_scores = wishes.score_budget
        if not for_scores:
            for_scores = left * score_share(len(sketch.candidates), sketch.total, left, cost)
            left -= for_scores
        noisy = measurer.scores(sketch, for_scores)
        price = for_scores / len(sketch.candidates)
        scores = shrunk_scores(noisy, 2 * sketch.total, price, cost)
        budgets = pair_budgets(sketch, scores, left, wishes, cost)
        if budgets:
            measurer.pairs(budgets)
        else:  # as good as a table of columns alone can be
            sizes = np.array([column.size for column in columns])
            names = (column.name for column in columns)
            measurer.one_ways(dict(zip(names, cost.split(sizes, left).tolist(), strict=True)))


def worth_scoring(left: float, budget: float) -> bool:
    """Whether columns leave enough of a budget for pairs."""
    return left > PAIRS_SHARE_MIN * budget


def known_sketch(
    columns: Sequence[Column], known: KnownEstimates, n_cells_max: int = N_FACTOR_CELLS_MAX
) -> Sketch:
    """A sketch from all that is known."""
    return Sketch.of(columns, known.tables, known.grouped, n_cells_max=n_cells_max)


def known_model(columns: Sequence[Column], known: KnownEstimates) -> PairwiseModel:
    """A model from all that is known; measures nothing."""
    return fit_model(known_sketch(columns, known))


def one_way_budgets(
    columns: Sequence[Column], known: KnownEstimates, budget: float, cost: NoiseCost = LAPLACE
) -> dict[str, float]:
    """The budget to add to each one-way table, of the budget for the whole synthetic table."""
    sizes = np.array([column.size for column in columns])
    n_rows = max(1.0, known.n_rows or 0.0)
    budgets = cost.split(sizes, one_way_share(sizes, n_rows, budget, cost) * budget)
    already = known_sketch(columns, known).one_ways
    added = {}
    for column, price in zip(columns, budgets.tolist(), strict=True):
        held = 0.0
        if column.name in already:
            held = cost.budget_for(np.array([column.size]), expected_l1(already[column.name]))
        if price - held > WORTH_ADDING * price:
            added[column.name] = price - held
    return added


def pair_budgets(
    sketch: Sketch, scores: Floats, budget: float, wishes: Wishes, cost: NoiseCost
) -> dict[Candidate, float]:
    """The budget to add to each table that is bought, chosen by the noisy scores of all of them.

    Notes
    -----
    Where an error counts `w` times as much, so does the noise that takes its place: such a table is
    chosen like one with `w` times its score and cells. Of the noise, `NOISE_LEFT` is counted: what
    is left of it, about, once the table is fitted to its columns' counts.
    """
    candidates = sketch.candidates
    scopes = sorted({one.scope for one in candidates})
    weights = np.array([wishes.weights.get(one.scope, 1.0) for one in candidates])
    errors = np.minimum(scores, [sketch.known_error(one.scope) for one in candidates])
    chosen, budgets = choose_tables(
        weights * errors / NOISE_LEFT,
        weights * [one.n_cells for one in candidates],
        budget,
        cost,
        subjects=np.array([scopes.index(one.scope) for one in candidates]),
    )
    bought = zip(chosen.tolist(), budgets.tolist(), strict=True)
    return {candidates[place]: price for place, price in bought}
