"""A partition of a grid's cells while it is split, block by block, until it fits all of them.

Only the cells that a block's rows touch are looked at: a condition touches a small part of a grid,
and the history has many of them. What is known of each part is how many cells it has, which says
whether a block covers it, so that one piece less comes of it.

Nothing here knows what the cells stand for; `atoms.py` does.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cube.block import QueryBlock
from cube.grid import Grid

N_LABELS_PER_CELL = 16  # up to this many, counting all labels is faster than sorting those in use


@dataclass(frozen=True, slots=True, eq=False)
class TouchedCells:
    """The cells of a grid that the rows of a block touch; each belongs to one row.

    Parameters
    ----------
    cells : (n_touched,) ndarray of int64
        Ascending.
    rows : (n_touched,) ndarray of int64
        The row of each.
    coefficients : (n_touched,) ndarray of float64
        The row's coefficient there, which is not 0.
    """

    cells: NDArray[np.int64]
    rows: NDArray[np.int64]
    coefficients: NDArray[np.float64]

    @classmethod
    def of_block(cls, grid: Grid, block: QueryBlock) -> "TouchedCells":
        """Those of a block whose scope lies within the grid's axes."""
        coefficients = grid.coefficients(block.query).ravel()
        (cells,) = (coefficients != 0).nonzero()  # of truth values, in a fraction of the time
        if block.partition is None:
            return cls(cells, np.zeros(cells.size, dtype=np.int64), coefficients[cells])
        labels = grid.labels(block.partition.axes, block.partition.groups)
        rows = np.broadcast_to(labels, grid.shape).ravel()[cells]
        if rows.size and rows.min() < 0:
            inside = rows >= 0
            cells, rows = cells[inside], rows[inside]
        return cls(cells, rows, coefficients[cells])

    def on_parts(self, part_of: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.float64]:
        """The rows as a matrix (n_rows, n_parts), if each is constant on every part."""
        found = np.zeros(shape, dtype=np.float64)
        found[self.rows, part_of[self.cells]] = self.coefficients
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Pieces:
    """What a block cuts out of the parts.

    Parameters
    ----------
    cells, places : (n_touched,) ndarrays of int64
        The touched cells, and the piece of each.
    numbers : (n_pieces,) ndarray of int64
        The number of each piece: its part's own, or a new one.
    n_cells, parts : (n_new,) ndarrays of int64
        Of each piece with a new number: its size, and the part that it is cut from.
    """

    cells: NDArray[np.int64]
    places: NDArray[np.int64]
    numbers: NDArray[np.int64]
    n_cells: NDArray[np.int64]
    parts: NDArray[np.int64]


class CellPartition:
    """A partition of cells.

    Parameters
    ----------
    part_of : (n_cells,) ndarray of int64
        The part of each cell, numbered from 0. It is copied.
    """

    def __init__(self, part_of: NDArray[np.int64]) -> None:
        self.part_of = part_of.copy()
        """The part of each cell, now. A part keeps its number as long as a piece of it is left."""
        self._n_cells = np.bincount(part_of)

    @property
    def n_parts(self) -> int:
        """The number of parts."""
        return self._n_cells.size

    def split(self, touched: TouchedCells, n_parts_max: int) -> bool:
        """Split parts until every row of a block is constant on each.

        Returns
        -------
        bool
            False if there were more than `n_parts_max` parts then; nothing is split.
        """
        pieces = self._pieces(touched)
        if self.n_parts + pieces.parts.size > n_parts_max:
            return False
        self.part_of[pieces.cells] = pieces.numbers[pieces.places]
        np.subtract.at(self._n_cells, pieces.parts, pieces.n_cells)
        self._n_cells = np.concatenate((self._n_cells, pieces.n_cells))
        return True

    def _pieces(self, touched: TouchedCells) -> _Pieces:
        n_keys, key = _keys(touched)
        label = self.part_of[touched.cells] * n_keys + key
        labels, place, n_cells = _counted(label, self.n_parts * n_keys)
        parts = labels // n_keys
        covered = np.bincount(parts, n_cells, self.n_parts)
        # Of a part that is covered, the first piece keeps the number; else what is not touched.
        keeps = covered[parts] == self._n_cells[parts]
        keeps[1:] &= parts[1:] != parts[:-1]
        is_new = ~keeps
        numbers = parts.copy()
        numbers[is_new] = self.n_parts + np.arange(np.count_nonzero(is_new))
        return _Pieces(touched.cells, place, numbers, n_cells[is_new], parts[is_new])


def _keys(touched: TouchedCells) -> tuple[int, NDArray[np.int64]]:
    """Numbers of the combinations of row and coefficient, and how many there may be."""
    rows, coefficients = touched.rows, touched.coefficients
    n_rows = int(rows.max(initial=0)) + 1
    if not rows.size or coefficients.min() == coefficients.max():
        return n_rows, rows
    values, which = np.unique(coefficients, return_inverse=True)
    return n_rows * values.size, rows * values.size + which


def _counted(
    label: NDArray[np.int64], n_labels: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The labels in use, ascending; the place of each cell's among them; how often each occurs."""
    if n_labels > N_LABELS_PER_CELL * label.size:
        labels, place, n = np.unique(label, return_inverse=True, return_counts=True)
        return labels, place.astype(np.int64), n.astype(np.int64)
    n_of_all = np.bincount(label, minlength=n_labels)
    (labels,) = (n_of_all > 0).nonzero()
    place_of = np.empty(n_labels, dtype=np.int64)
    place_of[labels] = np.arange(labels.size)
    return labels, place_of[label], n_of_all[labels]
