"""The method `pairwise`: measure one-way tables and the pairs that matter, fit, draw.

The flow alone. Measuring is a port: whoever implements it reads private data and pays for it; all
that is here sees noisy numbers. Without a budget a table is made from earlier estimates alone.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from cube.query import Scope
from synthesis.choice import LAPLACE, NoiseCost, choose_tables, one_way_share, score_share
from synthesis.known import KnownEstimates
from synthesis.model import PairwiseModel, Sketch, fit_model
from synthesis.tables import Column, Floats, expected_l1

TOTAL_SHARE = 0.005  # for counting the rows, where nothing says how many there are
WORTH_ADDING = 0.05  # of a one-way budget: less than that is not worth a purchase


class TableMeasurer(Protocol):
    """The one door to private data; what it tells is noisy and was paid for.

    Budgets are in the units of the `NoiseCost` that the tables are planned with, and add up. What
    is measured is known from then on.
    """

    def known(self) -> KnownEstimates:
        """What is known now."""
        ...

    def count(self, budget: float) -> None:
        """Count the rows."""
        ...

    def one_ways(self, budgets: Mapping[str, float]) -> None:
        """Measure one-way tables over levels, each with so much added to what was spent on it."""
        ...

    def scores(self, sketch: Sketch, budget: float) -> Floats:
        """For each of the sketch's pairs, its noisy distance from its reference.

        Parameters
        ----------
        sketch : Sketch
            Its `pairs` over its `buckets`; `Sketch.reference` says what to compare with.
        budget : float
            For all scores together.
        """
        ...

    def pairs(self, sketch: Sketch, budgets: Mapping[Scope, float]) -> None:
        """Measure pair tables over the sketch's buckets, each with so much added."""
        ...


def measured_model(
    columns: Sequence[Column],
    measurer: TableMeasurer,
    *,
    budget: float,
    cost: NoiseCost = LAPLACE,
) -> PairwiseModel:
    """Buy what a synthetic table needs, and fit it together with what is known.

    Parameters
    ----------
    columns : sequence of Column
    measurer : TableMeasurer
    budget : float
        Positive; never exceeded.
    cost : NoiseCost
        What noise a budget buys.

    Notes
    -----
    From what is known alone, at no cost: `known_model`. It is the last step here too, so that a
    table that was bought and one from history alone are the same.
    """
    if not (columns and 0 < budget < float("inf")):
        raise ValueError(f"{len(columns)} columns and a budget of {budget} make no table")
    left = budget
    if measurer.known().n_rows is None:
        measurer.count(TOTAL_SHARE * budget)
        left -= TOTAL_SHARE * budget
    wanted = one_way_budgets(columns, measurer.known(), left, cost)
    if wanted:
        measurer.one_ways(wanted)
        left -= sum(wanted.values())
    sketch = known_sketch(columns, measurer.known())
    if sketch.pairs:
        share = score_share(len(sketch.pairs), sketch.total, left, cost)
        scores = measurer.scores(sketch, share * left)
        budgets = pair_budgets(sketch, scores, (1 - share) * left, cost)
        if budgets:
            measurer.pairs(sketch, budgets)
    return known_model(columns, measurer.known())


def known_sketch(columns: Sequence[Column], known: KnownEstimates) -> Sketch:
    """A sketch from all that is known."""
    return Sketch.of(columns, known.tables, known.grouped)


def known_model(columns: Sequence[Column], known: KnownEstimates) -> PairwiseModel:
    """A model from all that is known; measures nothing."""
    return fit_model(known_sketch(columns, known))


def one_way_budgets(
    columns: Sequence[Column], known: KnownEstimates, budget: float, cost: NoiseCost = LAPLACE
) -> dict[str, float]:
    """What to add to each one-way table, of a budget for the whole table."""
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
    sketch: Sketch, scores: Floats, budget: float, cost: NoiseCost = LAPLACE
) -> dict[Scope, float]:
    """What to add to the table of each pair, if anything, by the noisy scores of all of them."""
    errors = np.minimum(scores, [sketch.known_error(pair) for pair in sketch.pairs])
    n_cells = np.array([sketch.n_cells(pair) for pair in sketch.pairs])
    chosen, budgets = choose_tables(errors, n_cells, budget, cost)
    bought = zip(chosen.tolist(), budgets.tolist(), strict=True)
    return {sketch.pairs[place]: price for place, price in bought}
