"""Advice to clip a heavy tail: what a sum with a cap would cost, and how few rows that concerns.

A sum costs in proportion to the largest value that one person may have. Where the history already
says that few rows are near it, EXPLAIN names a cap and the price of the sum with it. It reads noisy
answers that were released, charges nothing, and decides about no purchase.

How much a capped sum is too low is not said here: the analyst asks for it, or accepts it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cube.axis import Axis, IntegerAxis, MeasureAxis
from cube.query import Factor, LinearQuery, QueryBlock, Term, counting
from cube.refusals import InvalidTarget, TooLarge
from cube.schema import Schema
from cube.target import AccuracyTarget
from inference.posterior import Posterior
from planner.workload import Wanted
from proxy.tables.snapshot import TableSnapshot

N_HALVINGS: Final = 8  # of the largest value: a cap saves about a factor of 2 with each
FEW: Final = 0.01  # of the rows of the table
SAVED_AT_LEAST: Final = Fraction(1, 2)  # of the price; less is not worth a bias
N_LEVELS_MAX: Final = 2**20  # of a column: beyond it a cap takes longer to find than EXPLAIN may


@dataclass(frozen=True, slots=True)
class Cap:
    """A largest value of a column.

    Parameters
    ----------
    axis : Axis
    level : int
        The last level that is not capped.
    value : float
        Of that level.
    """

    axis: Axis
    level: int
    value: float

    def __str__(self) -> str:
        return f"LEAST({self.axis.name}, {self.value:.15g})"  # every level exactly

    @property
    def rows_above(self) -> QueryBlock:
        """The number of rows of the table that it would change."""
        places = np.arange(self.axis.size)
        is_above = (places > self.level) & (places < self.axis.n_regular)
        return QueryBlock(counting([Factor((self.axis.name,), is_above.astype(np.int64))]))

    def applied(self, block: QueryBlock) -> QueryBlock:
        """The same sum of capped values; distances from the middle are those from their middle."""
        terms = tuple(
            Term(term.scale, tuple(self._capped(factor) for factor in term.factors))
            for term in block.query.terms
        )
        return QueryBlock(LinearQuery(terms, block.query.constant), block.partition)

    def _capped(self, factor: Factor) -> Factor:
        if factor.axes != (self.axis.name,):
            return factor
        least, largest = factor.ends
        regular = slice(self.axis.n_regular)
        capped = factor.values.copy()
        capped[regular][self.level + 1 :] = capped[self.level]
        if abs(least + largest) <= 1:  # a middle is rounded to a whole number
            capped[regular] -= (capped[regular].min() + capped[regular].max()) // 2
        return Factor(factor.axes, capped)


def advice(table: TableSnapshot, schema: Schema, wanted: Wanted) -> str | None:
    """A cap that would save at least half of a price and concern few rows; None if none is known.

    Parameters
    ----------
    table : TableSnapshot
    schema : Schema
    wanted : Wanted
        Sums, and how accurately they are asked for in the end.
    """
    for cap in _caps(schema, wanted.block):
        share = _share_above(table, cap, wanted.target)
        if share is not None and share <= FEW:
            epsilon = _price(table, wanted)
            capped = _price(table, replace(wanted, block=cap.applied(wanted.block)))
            if not epsilon or capped is None or capped > SAVED_AT_LEAST * epsilon:
                return None
            return (
                f"{cap} costs about {float(capped):.3g} instead of {float(epsilon):.3g}. By the "
                f"history, at most {share:.1%} of the table's rows are above."
            )
    return None


def _caps(schema: Schema, block: QueryBlock) -> Iterator[Cap]:
    """Caps of the one column that is summed, the smallest first."""
    summed = {
        factor.axes for term in block.query.terms for factor in term.factors if factor.bound > 1
    }
    if len(summed) != 1 or len(axes := summed.pop()) != 1:
        return
    axis = schema.by_name[axes[0]]
    if not isinstance(axis, MeasureAxis | IntegerAxis) or axis.n_regular > N_LEVELS_MAX:
        return
    factors = [one for term in block.query.terms for one in term.factors if one.axes == axes]
    if not all(_is_monotone(factor, axis) for factor in factors):
        return
    values = np.array(axis.regular, dtype=np.float64)
    for halvings in range(N_HALVINGS, 0, -1):
        level = int(np.searchsorted(values, values[-1] / 2**halvings, side="right")) - 1
        if level >= 0 and values[level] > max(0.0, -values[0]):
            yield Cap(axis, level, float(values[level]))


def _is_monotone(factor: Factor, axis: Axis) -> bool:
    """Whether coefficients rise or fall with the column, so that a cap is one for them, too."""
    steps: NDArray[np.int64] = np.diff(factor.values[: axis.n_regular])
    return bool(np.all(steps >= 0) or np.all(steps <= 0))


def _share_above(table: TableSnapshot, cap: Cap, target: AccuracyTarget) -> float | None:
    """At most what share of the rows is above, at the target's confidence; None if unknown."""
    asked = [Wanted(block, target) for block in (cap.rows_above, QueryBlock(counting()))]
    above, every = (rows[0] for rows in table.estimates(asked))
    if not isinstance(above, Posterior) or not isinstance(every, Posterior):
        return None
    confidence = target.confidence
    least = every.value - every.half_width(confidence)
    most = above.value + above.half_width(confidence)
    return max(0.0, most) / least if least > 0 else None


def _price(table: TableSnapshot, wanted: Wanted) -> Fraction | None:
    asked: Sequence[Wanted] = [wanted]
    try:
        return table.price(table.plan(asked, table.estimates(asked)).planned).epsilon
    except (InvalidTarget, TooLarge):
        return None
