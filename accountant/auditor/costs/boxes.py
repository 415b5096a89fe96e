"""Boxes that together contain every cell, each with bounds on what its cells have paid.

The boxes of the largest bounds are bounded again with the rows added since, and split along an axis
where that is not enough. This proves totals of histories on many columns, for which the most
expensive cells are too many to list. Portions that were found once bound the totals after each of
many charges, so that these are proved together.

Rows are taken as products, a height and what share of it is paid in each class of each axis:

    cost of a row at a cell  <=  height * product over axes of  share of the cell's class / WHOLE

The two sides are about equal for what is usually measured, a count or a sum over a box of cells. Of
a row that is no product, a share only says whether anything is paid in a class.

In a box a product costs at most C, and in a class with a smaller share than the largest one of the
box, in proportion less. Divide C into a portion for each axis: then a cell pays at most the sum
over axes of the portion, times the share of its class in the largest. Summed over products, an axis
has a most expensive class; the sum of those, over axes, is a bound. Any division gives a bound. A
good one is looked for in floats; the bound is then computed from it in whole numbers.

Proof: proofs/ledger.md, "Boxes".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accountant.auditor.costs.tables import Indices, Layout, Part, Row, Table
from accountant.auditor.noise import Whole
from accountant.auditor.rows import LevelArray

WHOLE: Final = 2**12
N_COMPARED_MAX: Final = 2**12  # cells of a row; of a larger one, only where it is paid is used
HEIGHTS_MAX: Final = 2**46  # of all rows: sums of shares of them stay in int64

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Along:
    """The products that depend on one axis.

    Parameters
    ----------
    places : (n,) ndarray
        Their places among all products, ascending.
    shares : (n, n_classes) ndarray
    about : (n, n_classes) ndarray
        The same as floats, which multiply faster.
    """

    places: Numbers
    shares: Numbers
    about: NDArray[np.float32]

    def first(self, n_products: int) -> "Along":
        """Those among the first products."""
        n = int(np.searchsorted(self.places, n_products))
        return Along(self.places[:n], self.shares[:n], self.about[:n])


class Products:
    """All rows of a history as products, in order.

    Parameters
    ----------
    layout : Layout

    Attributes
    ----------
    heights : (n_products,) ndarray
    along : list of Along
        The bounds along each axis of `layout.classes`.
    ends : list of int
        How many products the first rows are, for each number of rows.
    constants : list of int
        The cost that the first rows add to every cell.
    """

    def __init__(self, layout: Layout) -> None:
        heights: list[int] = []
        shares: dict[str, list[tuple[int, Numbers]]] = {axis: [] for axis in layout.classes}
        self.ends, self.constants = [0], [0]
        for parts in layout.parts:
            constant = self.constants[-1]
            for part in parts:
                if part.table is None:
                    constant += part.row.bound
                    continue
                height, of_axis = _product(part, layout)
                for axis, share in of_axis.items():
                    shares[axis].append((len(heights), share))
                heights.append(height)
            self.ends.append(len(heights))
            self.constants.append(constant)
        self.heights = np.array(heights, dtype=np.int64)
        self.along = [
            _along(found, layout.classes[axis].levels.size) for axis, found in shares.items()
        ]


def _along(found: Sequence[tuple[int, Numbers]], n_classes: int) -> Along:
    places = np.array([place for place, _ in found], dtype=np.int64)
    shares = np.array([own for _, own in found], np.int64).reshape(-1, n_classes)
    return Along(places, shares, shares.astype(np.float32))


_Shares = dict[str, Numbers]


def _product(part: Part, layout: Layout) -> tuple[int, _Shares]:
    """The height of a part of a row, and its share in each class of the axes it depends on."""
    row = part.row
    arrays = row.share.arrays
    axes = [axis for array in arrays for axis in array.axes]
    is_linear = (row.price.shift, row.price.power) == (0, 1)
    if is_linear and len(row.share.terms) == 1 and len(arrays) == len(axes) == len(set(axes)):
        # A product as it is written, so that no cell need be looked at.
        return row.bound, {
            axis: _rounded_up(array, layout.classes[axis].levels)
            for axis, array in zip(axes, arrays, strict=True)
        }
    return _compared(part, layout)


def _rounded_up(array: LevelArray, levels: Indices) -> Numbers:
    """The magnitude of an array at some levels, as a share of its largest."""
    largest = max(1, array.bound)  # an array of zeros has no share of anything
    shares: Numbers = -(-np.abs(array.at([levels])) * WHOLE // largest)
    return shares


def _compared(part: Part, layout: Layout) -> tuple[int, _Shares]:
    """Shares of the largest cost along each axis, if no cell pays more than their product."""
    axes = part.row.share.axes
    table = Table(axes, [part.row.share], layout.classes)
    costs = np.broadcast_to(table.cost(part.row, layout.dtype), table.shape)
    height = int(costs.max())
    most = [_most(costs, dimension) for dimension in range(costs.ndim)]
    shares = [-(-one.astype(object) * WHOLE // max(1, height)) for one in most]
    if not _covers(shares, height, costs):
        shares = [np.where(one > 0, WHOLE, 0) for one in shares]
    by_axis = zip(axes, shares, table.label, strict=True)
    return height, {axis: share.astype(np.int64)[label] for axis, share, label in by_axis}


def _most(costs: Whole, dimension: int) -> Whole:
    others = tuple(n for n in range(costs.ndim) if n != dimension)
    most: Whole = np.asarray(costs.max(axis=others))
    return most


def _covers(shares: Sequence[NDArray[Any]], height: int, costs: Whole) -> bool:
    """Whether the product of shares is at least the cost in every cell, in whole numbers."""
    if costs.size > N_COMPARED_MAX:
        return len(shares) == 1
    product: Whole = np.array(height, dtype=object)
    for share in shares:
        product = np.multiply.outer(product, share)
    return bool((costs.astype(object) * WHOLE ** len(shares) <= product).all())


STEP: Final = 3.0
SLOWER: Final = 0.7  # a round that gains nothing makes the next steps this much smaller
LEAST: Final = 1e-9
N_SUMS_MAX: Final = 2**20  # numbers, after each row in each class, that are held at once
APART: Final = 0.1  # of portions that are known: or those near 0 could hardly rise again

Inside = NDArray[np.bool_]
Floats = NDArray[np.float32]
Known = list[NDArray[np.float32]]  # portions of one box, for each axis


class Portions:
    """Some boxes, and what each product costs there.

    Parameters
    ----------
    heights : (n_products,) ndarray
    along : sequence of Along
        The bounds along each axis.
    inside : sequence of (n_boxes, n_classes) ndarray
        For each axis, the classes in each box.

    Attributes
    ----------
    costs : (n_boxes, n_products) ndarray
        The most that a product costs a cell of a box.
    """

    def __init__(self, heights: Numbers, along: Sequence[Along], inside: Sequence[Inside]) -> None:
        self._along = along
        self._inside = inside
        self.costs = np.tile(heights, (len(inside[0]), 1))
        self._largest: list[Numbers] = []
        self._mean_left: list[Floats] = []
        for one, classes in zip(along, inside, strict=True):
            largest, mean = _of_boxes(one.shares, classes)
            self.costs[:, one.places] = share_of(self.costs[:, one.places], largest)
            self._largest.append(np.maximum(largest, 1))
            self._mean_left.append((1 - mean / self._largest[-1]).astype(np.float32))
        self._of_largest: list[Floats] = [
            (1 / largest).astype(np.float32) for largest in self._largest
        ]
        self._per_share: list[Floats] = [
            self.costs[:, one.places].astype(np.float32) * inverse
            for one, inverse in zip(along, self._of_largest, strict=True)
        ]

    def splits(self) -> list[int | None]:
        """For each box, the axis on which its costs differ most; None if they do on none."""
        gains = np.stack(
            [
                (self.costs[:, one.places] * left).sum(axis=1)
                / np.log2(np.maximum(classes.sum(axis=1), 2))
                for one, left, classes in zip(
                    self._along, self._mean_left, self._inside, strict=True
                )
            ]
        )
        best = gains.argmax(axis=0)
        return [int(axis) if gains[axis, box] > 0 else None for box, axis in enumerate(best)]

    def bounds(
        self, wanted: int, ends: Numbers, known: Sequence[Known], n_rounds: int
    ) -> tuple[Numbers, list[Known]]:
        """Bounds for each box, and the portions of each with which they were found.

        Parameters
        ----------
        wanted : int
            Better portions are looked for while the bound of a box is above.
        ends : (n_ends,) ndarray
            Numbers of products, ascending; the last is of all.
        known : sequence of list of (n,) ndarray
            For each box, portions to start from: for each axis, of its first products.
        n_rounds : int
            How often better portions are looked for, at the most.

        Returns
        -------
        bounds : (n_boxes, n_ends) ndarray
            Once the first products have been paid for, for each of `ends`.
        portions : list of list of (n,) ndarray
        """
        portions = self._first(known)
        best = [own.copy() for own in portions]
        n_boxes = len(self.costs)
        lowest, step = np.full(n_boxes, np.inf), np.full((n_boxes, 1), STEP, dtype=np.float32)
        active = np.arange(n_boxes)
        for n_left in range(n_rounds, -1, -1):
            found, paid = self._tried(portions, active)
            is_lower = found < lowest[active]
            for kept, own in zip(best, portions, strict=True):
                kept[active[is_lower]] = own[is_lower]
            step[active[~is_lower]] *= SLOWER
            lowest[active] = np.minimum(found, lowest[active])
            is_left = lowest[active] > wanted
            active = active[is_left]
            if n_left == 0 or not active.size:
                break
            portions = self._shared_out(
                [
                    own[is_left] * np.exp(-step[active] * full[is_left])
                    for own, full in zip(portions, paid, strict=True)
                ]
            )
        return self._bounds_of(best, ends), [list(of_box) for of_box in zip(*best, strict=True)]

    def _first(self, known: Sequence[Known]) -> list[Floats]:
        """Those known, a little apart; else more on the axes on which fewer classes pay."""
        portions = self._shared_out([left + np.float32(LEAST) for left in self._mean_left])
        for box, of_box in enumerate(known):
            for own, before in zip(portions, of_box, strict=True):
                first = own[box, : before.size]
                first += (1 - APART) * (before[: first.size] - first)
        return self._shared_out(portions)

    def _shared_out(self, portions: Sequence[Floats]) -> list[Floats]:
        """Portions of each product that sum to one."""
        total = np.zeros((len(portions[0]), self.costs.shape[1]), dtype=np.float32)
        for own, one in zip(portions, self._along, strict=True):
            total[:, one.places] += own
        return [own / total[:, one.places] for own, one in zip(portions, self._along, strict=True)]

    def _tried(
        self, portions: Sequence[Floats], boxes: Numbers
    ) -> tuple[NDArray[np.float64], list[Floats]]:
        """About the bounds, and how far each product is paid in the most expensive classes."""
        lowest = np.zeros(boxes.size)
        paid = []
        for place, own in enumerate(portions):
            one = self._along[place]
            sums = (own * self._per_share[place][boxes]) @ one.about
            sums[~self._inside[place][boxes]] = -1.0
            worst = sums.argmax(axis=1)
            lowest += sums[np.arange(worst.size), worst]
            paid.append(one.about[:, worst].T * self._of_largest[place][boxes])
        return lowest, paid

    def _bounds_of(self, portions: Sequence[Floats], ends: Numbers) -> Numbers:
        """The bounds, in whole numbers, of whatever portions: the last axis has what is left."""
        left = self.costs.copy()
        last = _last_axes(self._along, left.shape[1])
        total = np.zeros((len(left), ends.size), dtype=np.int64)
        for place, own in enumerate(portions):
            one = self._along[place]
            rounded = np.floor(own.astype(np.float64) * self.costs[:, one.places])
            # What floats have come to is cut, also where it is no number; all are below 2**53.
            part = np.fmin(np.fmax(rounded, 0), left[:, one.places]).astype(np.int64)
            part = np.where(last[one.places] == place, left[:, one.places], part)
            left[:, one.places] -= part
            per_share = -(-part * WHOLE // self._largest[place])
            total += self._most_paid(place, per_share, np.searchsorted(one.places, ends))
        bounds: Numbers = total // WHOLE  # a cost is a whole number, and at most this
        return bounds

    def _most_paid(self, place: int, per_share: Numbers, ends: Numbers) -> Numbers:
        """The payment along an axis in the most expensive class, after the first products."""
        shares, first = self._along[place].shares, int(ends[0])
        after = np.zeros((len(per_share), ends.size), dtype=np.int64)
        paid = per_share[:, :first] @ shares[:first]
        n_at_once = max(1, N_SUMS_MAX // max(1, shares[first : ends[-1]].size))
        for begin in range(0, len(per_share), n_at_once):
            some = slice(begin, begin + n_at_once)
            since = per_share[some, first : ends[-1], np.newaxis] * shares[first : ends[-1]]
            sums = np.cumsum(np.concatenate((paid[some, np.newaxis], since), axis=1), axis=1)
            most = np.where(self._inside[place][some, np.newaxis], sums, 0).max(axis=2)
            after[some] = most[:, ends - first]
        return after


def _of_boxes(shares: Numbers, inside: Inside) -> tuple[Numbers, Floats]:
    """The largest share and the mean one of each product, over the classes in each box."""
    known: dict[bytes, tuple[Numbers, Floats]] = {}
    names = [classes.tobytes() for classes in inside]
    for name, classes in zip(names, inside, strict=True):
        if name not in known:
            here = shares[:, classes]
            known[name] = here.max(axis=1), here.mean(axis=1)
    largest, mean = zip(*(known[name] for name in names), strict=True)
    return np.stack(largest), np.stack(mean)


def _last_axes(along: Sequence[Along], n_products: int) -> NDArray[Any]:
    """For each product, the last of its axes."""
    last = np.zeros(n_products, dtype=np.int64)
    for place, one in enumerate(along):
        last[one.places] = place
    return last


def share_of(costs: Numbers, shares: Numbers) -> Numbers:
    """A share of costs, rounded up."""
    part: Numbers = -(-costs * shares // WHOLE)
    return part


N_TOGETHER: Final = 2**6  # boxes that are looked at, or split, at once
N_ROUNDS: Final = 8
N_ROUNDS_OF_SPLIT: Final = 4
N_PARTS_TOGETHER: Final = 2**6
N_BOXES_MAX: Final = 2**13  # of the tree
GROWTH: Final = 1.125  # of the rows, after which the tree grows again from the first box
UNITS_MAX: Final = 2 * HEIGHTS_MAX  # no bound is above


@dataclass(frozen=True, slots=True)
class Due:
    """A total that is to be proved.

    Parameters
    ----------
    n_rows : int
        How many rows it is for, the first of the history.
    units : int
        No cell is to have paid more for them.
    """

    n_rows: int
    units: int


class Boxes:
    """A tree of boxes: the parts of a box contain all its cells, and the first box every cell.

    Parameters
    ----------
    rows : sequence of Row
        The whole history.
    layout : Layout

    Attributes
    ----------
    is_able : bool
        Whether the numbers are small enough. If not, nothing else may be used.
    n_looked_at : int
        How many costs, of a row in a box, were looked at so far.
    value : int
        No cell has paid more for the rows of the last total that was to be proved.
    """

    def __init__(self, rows: Sequence[Row], layout: Layout) -> None:
        self.n_looked_at = 0
        self.value = sum(row.bound for row in rows)
        self.is_able = self.value <= HEIGHTS_MAX and bool(layout.classes)
        if not self.is_able:
            return
        self._axes = list(layout.classes)
        self._classes = layout.classes
        self._products = Products(layout)
        sizes = [classes.levels.size for classes in layout.classes.values()]
        self._inside: list[Inside] = [np.ones((1, size), dtype=bool) for size in sizes]
        self._parts: list[Numbers | None] = [None]  # the places of each one's parts, once split
        # The portions with which each was bounded last.
        self._known: list[Known] = [[np.zeros(0, dtype=np.float32) for _ in sizes]]
        self._most, self._worst = self.value, 0
        self._n_rows_first = 0

    def proved(self, due: Sequence[Due], n_costs_max: int) -> int:
        """How many totals were proved, before the first that was not.

        Parameters
        ----------
        due : sequence of Due
            Totals to prove, each over more rows than the one before.
        n_costs_max : int
            How many costs, of a row in a box, are looked at; about.
        """
        if due[-1].n_rows > GROWTH * self._n_rows_first or len(self._parts) >= N_BOXES_MAX:
            self._start_again(due[-1].n_rows)
        search = _Search(due, self._most)
        enough = self.n_looked_at + n_costs_max
        while self.n_looked_at < enough and self._step(search):
            pass
        self.value, self._worst = search.largest()
        return int(search.n_proved.min())

    def cell(self) -> Mapping[str, int]:
        """A class of each axis in the box with the largest bound: the first inside."""
        return {
            axis: int(self._classes[axis].levels[int(inside[self._worst].argmax())])
            for axis, inside in zip(self._axes, self._inside, strict=True)
        }

    def _start_again(self, n_rows: int) -> None:
        """Forget all boxes but the first: with more rows, others are split better."""
        self._inside = [inside[:1] for inside in self._inside]
        self._parts, self._known, self._n_rows_first = [None], self._known[:1], n_rows

    def _step(self, search: "_Search") -> bool:
        """Look at the worst boxes, or put their parts in their place; False if there is none."""
        worst = search.worst()
        if not worst.size:
            return False
        is_known = search.is_known[worst]
        if is_known[0]:
            self._open(worst[is_known], search)
        else:
            self._look_at(worst[~is_known], search)
        return True

    def _open(self, numbers: Numbers, search: "_Search") -> None:
        """Put the parts of some boxes in their place; or give up, if the first has none."""
        if len(self._parts) < N_BOXES_MAX:
            self._split(numbers, search)
        parts = [self._parts[place] for place in search.places[numbers]]
        split = {int(n): own for n, own in zip(numbers, parts, strict=True) if own is not None}
        if int(numbers[0]) in split:
            search.replace(split)
        else:
            search.give_up(int(numbers[0]))

    def _portions(self, places: Sequence[int], n_rows: int) -> Portions:
        products = self._products
        n_products = products.ends[n_rows]
        along = [one.first(n_products) for one in products.along]
        inside = [one[places] for one in self._inside]
        return Portions(products.heights[:n_products], along, inside)

    def _look_at(self, numbers: Numbers, search: "_Search") -> None:
        """Bound some boxes after the rows of each total."""
        is_split = np.array([self._parts[place] is not None for place in search.places[numbers]])
        numbers = numbers[is_split == is_split[0]]
        n_rounds = N_ROUNDS_OF_SPLIT if is_split[0] else N_ROUNDS
        places = search.places[numbers].tolist()
        rows = [one.n_rows for one in search.due]
        constants = np.array([self._products.constants[n_rows] for n_rows in rows])
        ends = np.array([self._products.ends[n_rows] for n_rows in rows])
        # Below the least total, all are proved; as it is out of reach, good portions are found.
        wanted = int(search.units.min() - constants[-1])
        known = [self._known[place] for place in places]
        portions = self._portions(places, rows[-1])
        found, known = portions.bounds(wanted, ends, known, n_rounds)
        search.take(numbers, found + constants)
        for place, own in zip(places, known, strict=True):
            self._known[place] = own
        self.n_looked_at += len(places) * max(1, rows[-1])

    def _split(self, numbers: Numbers, search: "_Search") -> None:
        """Split some boxes that are not; not those in which every cell costs the same."""
        places = [n for n in search.places[numbers].tolist() if self._parts[n] is None]
        if not places:
            return
        portions = self._portions(places, search.due[-1].n_rows)
        grown = [[inside] for inside in self._inside]
        n_before = len(self._parts)
        for number, (place, axis) in enumerate(zip(places, portions.splits(), strict=True)):
            if axis is None or len(self._parts) - n_before >= N_PARTS_TOGETHER:
                break
            parts = self._divided(place, axis, portions.costs[number] > 0)
            self._parts[place] = np.arange(len(self._parts), len(self._parts) + len(parts))
            self._parts += [None] * len(parts)
            self._known += [self._known[place]] * len(parts)
            for other, inside in enumerate(self._inside):
                same = np.repeat(inside[[place]], len(parts), axis=0)
                grown[other].append(parts if other == axis else same)
        self._inside = [np.concatenate(of_axis) for of_axis in grown]

    def _divided(self, place: int, axis: int, is_paid: NDArray[np.bool_]) -> Inside:
        """The classes of a box along an axis, in parts on which all rows cost the same."""
        one = self._products.along[axis].first(is_paid.size)
        classes = np.flatnonzero(self._inside[axis][place])
        _, part = np.unique(
            one.shares[is_paid[one.places]][:, classes], axis=1, return_inverse=True
        )
        parts = np.zeros((int(part.max()) + 1, self._inside[axis].shape[1]), dtype=bool)
        parts[part.ravel(), classes] = True
        return parts


class _Search:
    """Bounds on boxes that contain every cell, kept while totals are proved.

    Parameters
    ----------
    due : sequence of Due
    most : int
        No cell pays more for the whole history.

    Attributes
    ----------
    units : (n_due,) ndarray
    places : (n_boxes,) ndarray
        Where the boxes are among those of the tree.
    n_proved : (n_boxes,) ndarray
        The number of totals that no cell of a box is above, before the first that one may be.
    is_known : (n_boxes,) ndarray
        Whether the box itself was looked at, and not only one that contains it.
    """

    def __init__(self, due: Sequence[Due], most: int) -> None:
        self.due = due
        self.units = np.array([min(one.units, UNITS_MAX) for one in due], dtype=np.int64)
        self.places: Numbers = np.zeros(1, dtype=np.int64)
        self.n_proved: Numbers = np.zeros(1, dtype=np.int64)
        self.is_known = np.zeros(1, dtype=bool)
        self._bounds: Numbers = np.array([most], dtype=np.int64)  # for the last total
        self._excess = self._bounds - self.units.min()  # where it is largest
        self._n_hoped = len(due)  # no more can be proved

    def worst(self) -> Numbers:
        """The numbers of boxes that are the furthest above a total that may still be proved."""
        above = np.flatnonzero(self.n_proved < self._n_hoped)
        return above[np.argsort(-self._excess[above], kind="stable")[:N_TOGETHER]]

    def largest(self) -> tuple[int, int]:
        """The largest bound for the last total, and the place of its box."""
        worst = int(self._bounds.argmax())
        return int(self._bounds[worst]), int(self.places[worst])

    def take(self, numbers: Numbers, found: Numbers) -> None:
        """Bounds on each total, of some boxes."""
        excess = found - self.units
        is_above = excess > 0
        first = np.where(is_above.any(axis=1), is_above.argmax(axis=1), len(self.due))
        self._bounds[numbers] = np.minimum(self._bounds[numbers], found[:, -1])
        self._excess[numbers] = np.minimum(self._excess[numbers], excess.max(axis=1))
        self.n_proved[numbers] = np.maximum(self.n_proved[numbers], first)
        self.is_known[numbers] = True

    def give_up(self, number: int) -> None:
        """A box that cannot be bounded better."""
        self._n_hoped = int(self.n_proved[number])

    def replace(self, parts: Mapping[int, Numbers]) -> None:
        """Put parts in the place of some boxes, by the number of each."""
        kept = np.delete(np.arange(self.places.size), list(parts))
        order = np.concatenate((kept, np.repeat(list(parts), [own.size for own in parts.values()])))
        self.places = np.concatenate((self.places[kept], *parts.values()))
        self.n_proved, self._bounds = self.n_proved[order], self._bounds[order]
        self._excess, self.is_known = self._excess[order], self.is_known[order]
        self.is_known[kept.size :] = False
