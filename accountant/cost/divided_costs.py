"""Bounds on what the cells of boxes have paid, from a division of each row's cost over its axes.

In a box, a row costs at most C, and where a class has a smaller share than the largest of the box,
in proportion less. So with any division of C over the axes of the row, a cell pays at most the sum,
over axes, of each axis's portion times the share there. Summed over rows, each axis has a worst
class; a bound is the sum of what is paid there, over axes.

Which division is good is found by float arithmetic: portions are moved from axes on whose worst
class a row is paid to others. The bound itself is computed from the division in whole numbers, and
is valid for any. Nothing here knows about budgets or data. Proof: proofs/table_cost.md, "Boxes".
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from accountant.cost.envelope import WHOLE
from accountant.cost.rows_along import RowsAlong
from cube.classes import Indices

N_ROUNDS = 10  # in which portions are moved
STEP = 3.0  # a portion that is paid in full on the worst class shrinks by exp(-STEP)
STEP_SHRINKS = 0.7  # after a round that gains nothing
NEW_SHARE = 0.1  # of portions that are known: or those near 0 could hardly rise again
ALONG_NOTHING = 1e-7  # a row costs the same in the whole box along an axis of such a portion
PORTION_LEAST = 1e-9  # before they are normalised: on axes of a single class, nothing more

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
Portions = NDArray[np.float32]


def at_most(costs: Numbers, shares: Numbers) -> Numbers:
    """A share of costs, rounded up."""
    product: Numbers = -(-costs * shares // WHOLE)
    return product


class DividedCosts:
    """The costs of rows in some boxes, and their division over axes.

    Parameters
    ----------
    heights : (n_rows,) ndarray
    along : sequence of RowsAlong
        For each axis.
    boxes : (n_boxes, n_axes) ndarray
    """

    def __init__(self, heights: Numbers, along: Sequence[RowsAlong], boxes: Indices) -> None:
        self._along = along
        self._boxes = boxes
        self._tops = [one.tops(boxes[:, place]) for place, one in enumerate(along)]
        self._costs = np.repeat(heights[np.newaxis], len(boxes), axis=0)
        for top, one in zip(self._tops, along, strict=True):
            self._costs[:, one.rows] = at_most(self._costs[:, one.rows], top)
        self._places = np.arange(len(boxes))
        self._shares = [one.shares.astype(np.float64) for one in along]

    def is_alive(self, box: int) -> NDArray[np.bool_]:
        """For each row, whether it costs a cell of a box anything."""
        alive: NDArray[np.bool_] = self._costs[box] > 0
        return alive

    def axes_to_split(self) -> list[int | None]:
        """For each box, the axis along which its rows differ most, for the number of classes.

        None where no row differs along any: the bound is then the cost of each of its cells.
        """
        scores = np.zeros(self._boxes.shape)
        for place, one in enumerate(self._along):
            n_classes = one.sets.sum(axis=1)[self._boxes[:, place]]
            gain = (self._costs[:, one.rows] * self._left_out(place)).sum(axis=1)
            scores[:, place] = np.where(n_classes > 1, gain / np.log2(np.maximum(n_classes, 2)), 0)
        best = scores.argmax(axis=1).tolist()
        return [axis if scores[box, axis] > 0 else None for box, axis in enumerate(best)]

    def _left_out(self, place: int) -> Floats:
        """Of each row on an axis, the mean over classes of the share that is not paid there."""
        one = self._along[place]
        means = one.means(self._boxes[:, place])
        left: Floats = 1 - means / np.maximum(self._tops[place], 1)
        return left

    def bounds(self, target: int, known: Sequence[Portions] = ()) -> tuple[Numbers, list[Portions]]:
        """A bound for each box, and portions with which it may be found again.

        Parameters
        ----------
        target : int
            No better division is looked for below it.
        known : sequence of (n_boxes, n_rows) ndarray
            Portions of the first rows of the first axes, to start from; 0 where none is known.
        """
        self._per_share = [
            self._costs[:, one.rows] / np.maximum(top, 1)
            for top, one in zip(self._tops, self._along, strict=True)
        ]
        self._outside = [
            np.where(one.sets[self._boxes[:, place]], 0.0, -np.inf)
            for place, one in enumerate(self._along)
        ]
        portions = self._first_portions(known)
        best = portions
        found, gradients = self._value(portions)
        step = np.full(len(found), STEP)
        for _ in range(N_ROUNDS):
            if (found <= target).all():
                break
            portions = self._moved(portions, gradients, step)
            value, gradients = self._value(portions)
            is_better = value < found
            if is_better.all():
                best = portions
            else:
                pairs = zip(portions, best, strict=True)
                best = [np.where(is_better[:, np.newaxis], *pair) for pair in pairs]
            found = np.minimum(value, found)
            step[~is_better] *= STEP_SHRINKS
        return self._proved(best), [own.astype(np.float32) for own in best]

    def _first_portions(self, known: Sequence[Portions]) -> list[Floats]:
        """Those known, a little apart; else more on the axes on which a row costs fewer classes."""
        n_axes = range(len(self._along))
        portions = self._normalised([self._left_out(place) + PORTION_LEAST for place in n_axes])
        for own, before in zip(portions, known, strict=False):
            first = own[:, : before.shape[1]]
            is_worth = (before > 0) & (first > ALONG_NOTHING)
            np.copyto(first, before + NEW_SHARE * (first - before), where=is_worth)
        return self._normalised(portions)

    def _normalised(self, portions: list[Floats]) -> list[Floats]:
        total = np.zeros(self._costs.shape)
        for own, one in zip(portions, self._along, strict=True):
            total[:, one.rows] += own
        return [own / total[:, one.rows] for own, one in zip(portions, self._along, strict=True)]

    def _value(self, portions: list[Floats]) -> tuple[Floats, list[Floats]]:
        """The bounds that portions give, and how much of each row is paid on the worst classes."""
        value = np.zeros(len(self._boxes))
        gradients = []
        for place, (own, one) in enumerate(zip(portions, self._along, strict=True)):
            paid = (own * self._per_share[place]) @ self._shares[place]
            paid += self._outside[place]
            worst = paid.argmax(axis=1)
            value += paid[self._places, worst]
            gradients.append(one.shares[:, worst].T / np.maximum(self._tops[place], 1))
        return value, gradients

    def _moved(self, portions: list[Floats], gradients: list[Floats], step: Floats) -> list[Floats]:
        moved = [
            own * np.exp(-step[:, np.newaxis] * gradient)
            for own, gradient in zip(portions, gradients, strict=True)
        ]
        return self._normalised(moved)

    def _proved(self, portions: list[Floats]) -> Numbers:
        """The bounds that portions give, rounded to whole numbers first."""
        left = self._costs.copy()
        parts = []
        for own, one in zip(portions, self._along, strict=True):
            part = np.floor(own * self._costs[:, one.rows])
            # Within what is left, whatever floats have come to; these are below 2**53.
            parts.append(np.clip(part, 0, left[:, one.rows]).astype(np.int64))
            left[:, one.rows] -= parts[-1]
        total = np.zeros(len(self._boxes), dtype=np.int64)
        for place, (own_part, one) in enumerate(zip(parts, self._along, strict=True)):
            part = own_part + left[:, one.rows]  # what rounding left over, once
            left[:, one.rows] = 0
            per_share = -(-part * WHOLE // np.maximum(self._tops[place], 1))
            paid = per_share @ one.shares
            paid[~one.sets[self._boxes[:, place]]] = 0
            total += paid.max(axis=1)
        bounds: Numbers = total // WHOLE  # costs are whole: rounding down loses none
        return bounds
