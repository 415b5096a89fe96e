"""A cover of all cells by boxes, each with a proved bound on what its cells have paid.

A box is a set of classes on each axis. No cell has paid more than the largest bound. To lower it,
the boxes with the largest bounds are bounded again (divided_costs.py), and split along an axis
where that does not suffice: branch and bound, stopped where it is no longer worth the time, and
taken up again when more rows have been paid for.

Nothing here knows about budgets or data. Proof: proofs/table_cost.md, "Boxes".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from accountant.cost.cell_function import CellFunction
from accountant.cost.divided_costs import DividedCosts, Portions, at_most
from accountant.cost.envelope import Envelope
from accountant.cost.rows_along import RowsAlong
from cube.classes import AxisClasses, Indices

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
        What every cell has paid beside them.
    along : mapping of str to RowsAlong
        For each axis, the rows that depend on it, and the sets of classes that boxes use.
    boxes : (n_boxes, n_axes) ndarray
        The number of each box's set on each axis, in the order of `along`.
    bounds : (n_boxes,) ndarray
        No cell of the box has paid more.
    n_known : (n_boxes,) ndarray
        The number of rows there were when the box was last looked at.
    portions : sequence of (n_boxes, n_rows) ndarray
        For each axis, the portions by which each box was bounded last, or the box of which it is a
        part; 0 where there are none. Rows and axes that came later are missing. They only decide
        where the search for better ones starts.
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
