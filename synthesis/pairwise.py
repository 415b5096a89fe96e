"""The method `pairwise`: measure one-way tables and the pairs that matter, fit, draw.

The flow alone. Measuring is a port: whoever implements it reads private data and pays for it; all
that is here sees noisy numbers. Without a budget a table is made from earlier estimates alone.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from cube.query import Scope
from synthesis.choice import LAPLACE, NoiseCost, choose_tables, one_way_share
from synthesis.model import PairwiseModel, Sketch, fit_model
from synthesis.tables import Column, Floats, TableEstimate, expected_l1

SCORE_SHARE = 0.1  # of what one-way tables leave: scores only have to tell strong pairs from weak


class Measurer(Protocol):
    """The one door to private data; what it returns is noisy and was paid for.

    Budgets are in the units of the `NoiseCost` that the tables are planned with, and add up.
    """

    def one_ways(self, budgets: Mapping[str, float]) -> Sequence[TableEstimate]:
        """Measure one-way tables over levels, each at its budget."""
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

    def pairs(self, sketch: Sketch, budgets: Mapping[Scope, float]) -> Sequence[TableEstimate]:
        """Measure pair tables over the sketch's buckets, each at its budget."""
        ...


def measured_model(  # noqa: PLR0913 - what to buy, from whom, and how, which is by keyword
    columns: Sequence[Column],
    measurer: Measurer,
    *,
    budget: float,
    n_rows: float,
    known: Sequence[TableEstimate] = (),
    cost: NoiseCost = LAPLACE,
) -> PairwiseModel:
    """Buy what a synthetic table needs, and fit it together with what is known.

    Parameters
    ----------
    columns : sequence of Column
    measurer : Measurer
    budget : float
        Positive; never exceeded.
    n_rows : float
        About how many rows there are, a public or a noisy number: it decides only how the budget is
        divided.
    known : sequence of TableEstimate
        Independent estimates over levels, from the history; they cost nothing, and what they tell
        well enough is not bought again.
    cost : NoiseCost
        What noise a budget buys.

    Notes
    -----
    From `known` alone, at no cost: ``fit_model(Sketch.of(columns, known))``. Rows of either model
    are drawn by `drawing.draw_rows`.
    """
    if not (columns and 0 < budget < float("inf")):
        raise ValueError(f"{len(columns)} columns and a budget of {budget} make no table")
    wanted = _one_way_budgets(columns, known, budget, n_rows, cost)
    one_ways = measurer.one_ways(wanted)
    sketch = Sketch.of(columns, [*known, *one_ways])
    left = budget - sum(wanted.values())
    if not sketch.pairs:
        return fit_model(sketch)
    scores = measurer.scores(sketch, SCORE_SHARE * left)
    errors = np.minimum(scores, [sketch.known_error(pair) for pair in sketch.pairs])
    n_cells = np.array([sketch.n_cells(pair) for pair in sketch.pairs])
    chosen, budgets = choose_tables(errors, n_cells, (1 - SCORE_SHARE) * left, cost)
    bought = zip(chosen.tolist(), budgets.tolist(), strict=True)
    return fit_model(
        sketch, measurer.pairs(sketch, {sketch.pairs[place]: price for place, price in bought})
    )


def _one_way_budgets(
    columns: Sequence[Column],
    known: Sequence[TableEstimate],
    budget: float,
    n_rows: float,
    cost: NoiseCost,
) -> dict[str, float]:
    """What to spend on each one-way table, without those that are known as well already."""
    sizes = np.array([column.size for column in columns])
    share = one_way_share(sizes, n_rows, budget, cost)
    budgets = cost.split(sizes, share * budget)
    already = Sketch.of(columns, known).one_ways
    return {
        column.name: float(price)
        for column, price in zip(columns, budgets, strict=True)
        if column.name not in already
        or expected_l1(already[column.name]) > cost.least_l1(np.array([column.size]), float(price))
    }
