"""The rows that depend on one axis: the share of each on every class, and sets of classes.

Nothing here knows about weights, budgets or data. Proof: proofs/table_cost.md, "Boxes".
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cube.classes import AxisClasses, Indices


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
        The share of each row on each class (envelope.py).
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
