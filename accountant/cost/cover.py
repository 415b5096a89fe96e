"""A cover of all cells by boxes, each with a proved bound on what its cells have paid.

A box is a set of classes on each axis. No cell has paid more than the largest bound. To lower it,
the boxes with the largest bounds are bounded again, and split along an axis where that does not
suffice: branch and bound, stopped where it is no longer worth the time, and taken up again when
more rows have been paid for.

What a row costs is taken as a product that is nowhere below it, its envelope: a height, and a share
of it along each axis.

    function at a cell  <=  height * product over axes of  share of the cell's class / WHOLE

The cost of a count of a box is such a product itself, with shares 0 and 1. Where a function is no
product, a share only says whether it is positive anywhere in the class.

In a box, a row costs at most C, and where a class has a smaller share than the largest of the box,
in proportion less. So with any division of C over the axes of the row, a cell pays at most the sum,
over axes, of each axis's portion times the share there. Summed over the rows that depend on an
axis, each axis has a worst class; a bound is the sum over axes of the payments there.

Which division is good is found by float arithmetic: portions are moved from axes on whose worst
class a row is paid to others. The bound itself is computed from the division in whole numbers, and
is valid for any. Nothing here knows about weights, budgets or data. Proof: proofs/table_cost.md,
"Boxes".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from accountant.cost.cell_function import CellFunction, Whole, whole_dtype
from cube.classes import AxisClasses, Indices
from cube.query import Scope

WHOLE = 2**12  # a share of everything; shares are rounded up
N_COMPARED_MAX = 2**12  # values; of a function with more, only where it is positive is used


@dataclass(frozen=True, eq=False, slots=True)
class Envelope:
    """A product of shares.

    Parameters
    ----------
    height : int
        The largest value of the function.
    axes : tuple of str
    classes : tuple of AxisClasses
        The classes of levels of each axis, of degree 0.
    shares : tuple of (n_classes,) ndarray
        For each axis, the share of each class, from 0 to `WHOLE`.
    """

    height: int
    axes: Scope
    classes: tuple[AxisClasses, ...]
    shares: tuple[Indices, ...]

    @classmethod
    def of(cls, function: CellFunction) -> "Envelope":
        """The envelope of a function that is not negative."""
        flat = function.flattened()
        height = int(flat.values.max())
        if not height:
            return cls(0, (), (), ())
        most = [_along(flat.values, dimension) for dimension in range(flat.values.ndim)]
        shares = tuple(_shares(one, height) for one in most)
        if not _is_above(shares, height, flat.values):
            shares = tuple(np.where(one > 0, WHOLE, 0) for one in shares)
        return cls(height, flat.axes, flat.classes, shares)


def _along(values: Whole, dimension: int) -> Whole:
    """The largest value in each class of one axis."""
    others = tuple(n for n in range(values.ndim) if n != dimension)
    most: Whole = np.asarray(values.max(axis=others)) if others else values
    return most


def _shares(most: Whole, height: int) -> Indices:
    dtype = whole_dtype(height * WHOLE)
    return (-(-most.astype(dtype) * WHOLE // height)).astype(np.int64)


def _is_above(shares: tuple[Indices, ...], height: int, values: Whole) -> bool:
    """Whether the product of the shares is nowhere below the values; exact, in whole numbers."""
    if len(shares) <= 1:
        return True
    if values.size > N_COMPARED_MAX:
        return False
    product: Whole = np.array(height, dtype=object)
    for one in shares:
        product = np.multiply.outer(product, one.astype(object))
    return bool((values.astype(object) * WHOLE ** len(shares) <= product).all())


@dataclass(frozen=True, eq=False, slots=True)
class RowsAlong:
    """Rows along one axis.

    Parameters
    ----------
    classes : AxisClasses
        Of degree 0; no row distinguishes more.
    rows : (n_rows,) ndarray
        The rows that depend on the axis, ascending.
    shares : (n_rows, n_classes) ndarray
        The share of each row on each class.
    sets : (n_sets, n_classes) ndarray of bool
        Sets of classes; the first is that of all.
    """

    classes: AxisClasses
    rows: Indices
    shares: Indices
    sets: NDArray[np.bool_]

    @classmethod
    def without_rows(cls, n_levels: int) -> "RowsAlong":
        """An axis of so many levels on which no row depends."""
        nothing = np.zeros(0, dtype=np.int64)
        everything = np.ones((1, 1), dtype=bool)
        return cls(AxisClasses.undivided(n_levels), nothing, nothing.reshape(0, 1), everything)

    def with_rows(self, new: Sequence[tuple[int, AxisClasses, Indices]]) -> "RowsAlong":
        """The same with more rows, each with its shares on classes of its own."""
        joint = self.classes.refined_by([classes for _, classes, _ in new])
        levels = joint.first_levels
        before = self.classes.at(levels)
        last = [shares[classes.at(levels)] for _, classes, shares in new]
        return RowsAlong(
            joint,
            np.append(self.rows, [row for row, _, _ in new]),
            np.vstack((self.shares[:, before], *last)),
            self.sets[:, before],
        )

    def tops_of_row(self, place: int) -> Indices:
        """The largest share, on each set, of the row at a place in `rows`, (n_sets,)."""
        tops: Indices = np.where(self.sets, self.shares[place], 0).max(axis=1)
        return tops

    def tops(self, sets: Indices) -> Indices:
        """The largest share of each row on each of some sets, (n, n_rows)."""
        used, place = np.unique(sets, return_inverse=True)
        tops = [self.shares[:, self.sets[one]].max(axis=1) for one in used.tolist()]
        return np.stack(tops)[place]

    def means(self, sets: Indices) -> NDArray[np.float64]:
        """The mean share of each row on each of some sets, (n, n_rows)."""
        used, place = np.unique(sets, return_inverse=True)
        means = [self.shares[:, self.sets[one]].mean(axis=1) for one in used.tolist()]
        return np.stack(means)[place]

    def split(self, one: int, is_alive: NDArray[np.bool_]) -> tuple["RowsAlong", Indices]:
        """Split a set where one of some rows has different shares: with its parts, their numbers.

        `is_alive` says for every row, also of other axes, whether it matters.
        """
        classes = np.flatnonzero(self.sets[one])
        shares = self.shares[is_alive[self.rows]][:, classes]
        _, part = np.unique(shares, axis=1, return_inverse=True)
        part = part.ravel()
        parts = np.zeros((int(part.max()) + 1, self.sets.shape[1]), dtype=bool)
        parts[part, classes] = True
        known = {own.tobytes(): number for number, own in enumerate(self.sets)}
        numbers = [known.setdefault(own.tobytes(), len(known)) for own in parts]
        new = [own for own, number in zip(parts, numbers, strict=True) if number >= len(self.sets)]
        sets = np.vstack((self.sets, *new)) if new else self.sets
        return replace(self, sets=sets), np.array(numbers, dtype=np.int64)


N_ROUNDS = 10  # in which portions are moved
STEP = 3.0  # a portion that is paid in full on the worst class shrinks by exp(-STEP)
STEP_SHRINKS = 0.7  # after a round that gains nothing
NEW_SHARE = 0.1  # of portions that are known: or those near 0 could hardly rise again
ALONG_NOTHING = 1e-7  # a row costs the same in the whole box along an axis of such a portion
PORTION_LEAST = 1e-9  # before they are normalised: on axes of a single class, nothing more

WholeNumbers = NDArray[np.int64]
Floats = NDArray[np.float64]
Portions = NDArray[np.float32]


def at_most(costs: WholeNumbers, shares: WholeNumbers) -> WholeNumbers:
    """A share of costs, rounded up."""
    product: WholeNumbers = -(-costs * shares // WHOLE)
    return product


class DividedCosts:
    """The costs of rows in some boxes, and their division over axes.

    Parameters
    ----------
    heights : (n_rows,) ndarray
    along : sequence of RowsAlong
        The rows along each axis.
    boxes : (n_boxes, n_axes) ndarray
    """

    def __init__(self, heights: WholeNumbers, along: Sequence[RowsAlong], boxes: Indices) -> None:
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
        """For each row on an axis, the mean over classes of the share that is not paid there."""
        one = self._along[place]
        means = one.means(self._boxes[:, place])
        left: Floats = 1 - means / np.maximum(self._tops[place], 1)
        return left

    def bounds(
        self, target: int, known: Sequence[Portions] = ()
    ) -> tuple[WholeNumbers, list[Portions]]:
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

    def _proved(self, portions: list[Floats]) -> WholeNumbers:
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
        bounds: WholeNumbers = total // WHOLE  # costs are whole: rounding down loses none
        return bounds


N_BOXES_MAX = 2**13
N_AT_ONCE = 16  # boxes that are bounded again, or split, together
N_PARTS_AT_ONCE = 2**6  # into which they are split, about
N_PORTIONS_MAX = 2**21  # of rows in boxes, that are kept: some megabytes
TOTAL_MAX = 2**46  # of all rows, in units: what is computed from it stays in int64

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Cover:
    """Boxes that cover all cells, and the rows whose costs they bound.

    Parameters
    ----------
    heights : (n_rows,) ndarray
        The largest cost of each row.
    constant : int
        The amount that every cell has paid in addition to the rows.
    along : mapping of str to RowsAlong
        For each axis, the rows that depend on it, and the sets of classes that boxes use.
    boxes : (n_boxes, n_axes) ndarray
        The number of each box's set on each axis, in the order of `along`.
    bounds : (n_boxes,) ndarray
        For each box, the most that one of its cells can have paid.
    n_known : (n_boxes,) ndarray
        The number of rows there were when the box was last looked at.
    portions : sequence of (n_boxes, n_rows) ndarray
        For each axis, the portions by which each box, or the larger box it was cut from, was
        bounded last; 0 where there are none. Rows and axes that came later are missing. They only
        decide where the search for better ones starts.
    """

    heights: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    constant: int = 0
    along: Mapping[str, RowsAlong] = field(default_factory=lambda: MappingProxyType({}))
    boxes: Indices = field(default_factory=lambda: np.zeros((1, 0), dtype=np.int64))
    bounds: Numbers = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    n_known: Numbers = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    portions: Sequence[Portions] = ()

    @property
    def value(self) -> int:
        """No cell has paid more."""
        return int(self.bounds.max())

    def along_axis(self, axis: str) -> CellFunction:
        """No cell with a level of an axis has paid more than this, for each level."""
        along = self.along.get(axis)
        if along is None:
            return CellFunction.constant(self.value)
        of_box = along.sets[self.boxes[:, list(self.along).index(axis)]]
        most = np.where(of_box, self.bounds[:, np.newaxis], 0).max(axis=0)
        return CellFunction((axis,), (along.classes,), most, exact=False).reduced()

    def added(self, functions: Sequence[CellFunction]) -> "Cover | None":
        """The same boxes after more is paid; None if the numbers become too large."""
        envelopes = [Envelope.of(function) for function in functions]
        total = int(self.heights.sum()) + self.constant + sum(one.height for one in envelopes)
        if total > TOTAL_MAX:
            return None
        constant = sum(one.height for one in envelopes if not one.axes)
        rows = [one for one in envelopes if one.axes]
        along = _with_rows(self.along, rows, self.heights.size)
        boxes = np.pad(self.boxes, ((0, 0), (0, len(along) - len(self.along))))  # set 0: all
        return Cover(
            np.append(self.heights, np.array([one.height for one in rows], dtype=np.int64)),
            self.constant + constant,
            along,
            boxes,
            self.bounds + constant + _paid(along, rows, boxes),
            self.n_known,
            self.portions,
        )

    def refined(self, target: int, n_boxes: int) -> "Cover":
        """A cover with lower bounds.

        Parameters
        ----------
        target : int
            A bound that is low enough.
        n_boxes : int
            Once this many boxes have been looked at, no more are.
        """
        work = _Refinement(self, target)
        while work.n_looked_at < n_boxes and work.step():
            pass
        return work.cover()


def _with_rows(
    along: Mapping[str, RowsAlong], rows: Sequence[Envelope], n_before: int
) -> Mapping[str, RowsAlong]:
    """Every axis with the rows that depend on it; new axes come last."""
    new: dict[str, list[tuple[int, AxisClasses, Indices]]] = {}
    for row, envelope in enumerate(rows, start=n_before):
        for name, classes, shares in zip(
            envelope.axes, envelope.classes, envelope.shares, strict=True
        ):
            new.setdefault(name, []).append((row, classes, shares))
    found = dict(along)
    for name, of_axis in new.items():
        before = found.get(name) or RowsAlong.without_rows(of_axis[0][1].n_levels)
        found[name] = before.with_rows(of_axis)
    return MappingProxyType(found)


def _paid(along: Mapping[str, RowsAlong], rows: Sequence[Envelope], boxes: Indices) -> Numbers:
    """The most that cells of each box pay for the last rows, (n_boxes,)."""
    total = np.zeros(len(boxes), dtype=np.int64)
    columns = {name: column for column, name in enumerate(along)}
    place = {name: len(one.rows) for name, one in along.items()}
    for envelope in reversed(rows):
        costs = np.full(len(boxes), envelope.height, dtype=np.int64)
        for name in envelope.axes:
            place[name] -= 1
            tops = along[name].tops_of_row(place[name])
            costs = at_most(costs, tops[boxes[:, columns[name]]])
        total += costs
    return total


class _Refinement:
    """A cover while boxes are bounded again and split."""

    def __init__(self, cover: Cover, target: int) -> None:
        self._before = cover
        self._target = target
        self._along = dict(cover.along)
        self._names = list(cover.along)
        self._boxes, self._bounds = cover.boxes, cover.bounds.copy()
        self._n_known = cover.n_known.copy()
        self._portions = self._with_room(cover.portions)
        self.n_looked_at = 0

    def _with_room(self, portions: Sequence[Portions]) -> list[Portions]:
        """Portions with a place for every row, or none if there are too many to keep."""
        sizes = [one.rows.size for one in self._along.values()]
        if len(self._boxes) * sum(sizes) > N_PORTIONS_MAX:
            portions = ()
        room = [np.zeros((len(self._boxes), size), dtype=np.float32) for size in sizes]
        for own, before in zip(room, portions, strict=False):
            own[:, : before.shape[1]] = before
        return room

    def cover(self) -> Cover:
        """The cover as it is now."""
        return replace(
            self._before,
            along=MappingProxyType(self._along),
            boxes=self._boxes,
            bounds=self._bounds,
            n_known=self._n_known,
            portions=self._portions,
        )

    def step(self) -> bool:
        """Look at the boxes with the largest bounds; whether that may help."""
        above = np.flatnonzero(self._bounds > self._target)
        if not above.size or not self._names:
            return False
        worst = above[np.argsort(-self._bounds[above], kind="stable")[:N_AT_ONCE]]
        is_known = self._n_known[worst] == self._before.heights.size
        if is_known[0]:
            return self._split(worst[is_known])
        self._look_at(worst[~is_known])
        return True

    def _look_at(self, places: Indices) -> None:
        """Bound some boxes again."""
        constant = self._before.constant
        known = [one[places] for one in self._portions]
        found, portions = self._divided(places).bounds(self._target - constant, known)
        self._bounds[places] = np.minimum(self._bounds[places], constant + found)
        for own, new in zip(self._portions, portions, strict=True):
            own[places] = new
        self._n_known[places] = self._before.heights.size
        self.n_looked_at += places.size

    def _split(self, places: Indices) -> bool:
        """Split boxes and look at the parts; False if the first box cannot be split."""
        divided = self._divided(places)
        axes = divided.axes_to_split()
        if axes[0] is None or len(self._boxes) >= N_BOXES_MAX:
            return False
        is_kept = np.ones(len(self._boxes), dtype=bool)
        parts: list[Indices] = []
        came_from: list[int] = []
        for number, (place, axis) in enumerate(zip(places.tolist(), axes, strict=True)):
            if axis is None or len(came_from) >= N_PARTS_AT_ONCE:
                break
            parts.append(self._parts(place, axis, divided.is_alive(number)))
            came_from += [place] * len(parts[-1])
            is_kept[place] = False
        n_kept = int(is_kept.sum())
        order = np.append(np.flatnonzero(is_kept), came_from)
        self._boxes = np.concatenate([self._boxes[is_kept], *parts])
        self._bounds = self._bounds[order]
        self._portions = [one[order] for one in self._portions]
        self._n_known = np.append(self._n_known[is_kept], np.zeros(len(came_from), np.int64))
        self._look_at(np.arange(n_kept, len(self._boxes)))
        return True

    def _parts(self, place: int, axis: int, is_alive: NDArray[np.bool_]) -> Indices:
        """The boxes into which one is split along an axis."""
        name = self._names[axis]
        along, sets = self._along[name].split(int(self._boxes[place, axis]), is_alive)
        self._along[name] = along
        parts = np.repeat(self._boxes[[place]], sets.size, axis=0)
        parts[:, axis] = sets
        return parts

    def _divided(self, places: Indices) -> DividedCosts:
        along = list(self._along.values())
        return DividedCosts(self._before.heights, along, self._boxes[places])
