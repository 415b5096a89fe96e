"""Atoms: the cells of a few axes, merged where no measured row distinguishes them.

Every measured row is constant on each atom, so atoms carry all the information of the history: a
query that is not constant on them is not in the span of the rows, and has no unbiased estimate.
Levels are merged axis by axis first (`cube.grid`), products of classes afterwards; both merges are
exact and neither depends on data.

The partition of a grid's cells is split, block by block, until it fits all of them. Only the cells
that a block's rows touch are looked at: a condition touches a small part of a grid, and the history
has many of them. What is known of each part is how many cells it has, which says whether a block
covers it, so that one piece less comes of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cube.classes import first_places
from cube.grid import Grid
from cube.query import QueryBlock, Scope
from cube.runtime import cached_property

N_LABELS_PER_CELL = 16  # up to this many, counting all labels is faster than sorting those in use


@dataclass(frozen=True, slots=True, eq=False)
class TouchedCells:
    """The cells of a grid that the rows of a block touch; each belongs to one row.

    Parameters
    ----------
    cells : (n_touched,) ndarray of int64
        The touched cells, in ascending order.
    rows : (n_touched,) ndarray of int64
        The row of each touched cell.
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


N_GRID_CELLS_MAX = 2**20  # products of classes laid out at once: 8 MB an array
N_ENTRIES_MAX = 2**24  # rows times atoms: 128 MB, and a few such arrays while estimating


@dataclass(frozen=True, eq=False)
class RowsOnAtoms:
    """The rows of a block, as coefficients on atoms.

    Parameters
    ----------
    coefficients : (n_rows, n_atoms) ndarray of float64
        Meaningful for the rows that are constant on every atom.
    is_constant : (n_rows,) ndarray of bool
        Whether the row is constant on every atom.
    """

    coefficients: NDArray[np.float64]
    is_constant: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Atoms:
    """A partition of a grid's cells.

    Parameters
    ----------
    grid : Grid
        Its cells are products of classes of levels.
    of_cell : (n_cells,) ndarray of int64
        The atom of each grid cell, in row-major order.
    """

    grid: Grid
    of_cell: NDArray[np.int64]

    @classmethod
    def undivided(cls, axes: Scope, sizes: tuple[int, ...]) -> "Atoms":
        """A single atom: the partition before any row."""
        return cls(Grid.undivided(axes, sizes), np.zeros(1, dtype=np.int64))

    @cached_property
    def representatives(self) -> NDArray[np.int64]:
        """The first grid cell of each atom, (n_atoms,)."""
        return first_places(self.of_cell)

    @property
    def n_atoms(self) -> int:
        """The number of atoms."""
        return self.representatives.size

    @cached_property
    def sizes(self) -> NDArray[np.float64]:
        """The number of cube cells (over the grid's axes) in each atom."""
        sizes = np.bincount(self.of_cell, weights=self.grid.cell_sizes().ravel())
        return sizes.astype(np.float64)

    def refined(
        self, blocks: Sequence[QueryBlock], n_atoms_max: int = N_GRID_CELLS_MAX
    ) -> tuple["Atoms", NDArray[np.int64], NDArray[np.float64]] | None:
        """Split atoms until every row of `blocks` is constant on each.

        Parameters
        ----------
        blocks : sequence of QueryBlock
        n_atoms_max : int
            The most atoms that there may be.

        Returns
        -------
        atoms : Atoms
        parents : (n_atoms of the new,) ndarray of int64
            The old atom that each new one is a piece of. One of an atom's pieces has its number,
            and further pieces come after all old atoms. The number of old atoms stands for
            none: no old row has a coefficient on a power that is new.
        rows : (n_rows of all blocks, n_atoms of the new) ndarray of float64
            The rows' coefficients on the new atoms.

        None if the products of classes, the atoms or the rows are too many to lay out.
        """
        grid = self.grid.refined(blocks)
        n_rows = sum(block.n_rows for block in blocks)
        if not _can_be_laid_out(grid, len(blocks)):
            return None
        old = self._on(grid)
        partition, touched = CellPartition(old), []
        for block in blocks:
            touched.append(TouchedCells.of_block(grid, block))
            if not partition.split(touched[-1], n_atoms_max):
                return None  # there are no fewer with the blocks that are left
        if n_rows * partition.n_parts > N_ENTRIES_MAX:
            return None
        atoms = Atoms(grid, partition.part_of)
        on_atoms = [
            one.on_parts(atoms.of_cell, (block.n_rows, atoms.n_atoms))
            for one, block in zip(touched, blocks, strict=True)
        ]
        return atoms, old[atoms.representatives], np.concatenate(on_atoms)

    def fitting(
        self, blocks: Sequence[QueryBlock], *, n_atoms_max: int, n_rows_max: int
    ) -> list[int] | None:
        """The places of the blocks that fit, each together with those before it that fit.

        None if the products of classes of all of them are too many to lay out.
        """
        grid = self.grid.refined(blocks)
        if not _can_be_laid_out(grid, len(blocks)):
            return None
        partition, n_rows, places = CellPartition(self._on(grid)), 0, []
        for place, block in enumerate(blocks):
            if n_rows + block.n_rows > n_rows_max:
                continue
            if partition.split(TouchedCells.of_block(grid, block), n_atoms_max):
                n_rows += block.n_rows
                places.append(place)
        return places

    def rows(self, block: QueryBlock) -> RowsOnAtoms | None:
        """Read the rows of a block, which need not be constant on the atoms.

        None if the products of classes, or the rows, are too many to lay out.
        """
        grid = self.grid.refined([block])
        if grid.n_cells > N_GRID_CELLS_MAX or block.n_rows * self.n_atoms > N_ENTRIES_MAX:
            return None
        of_cell = self._on(grid)
        coefficient, group = row_signature(grid, block)
        is_constant = np.ones(block.n_rows, dtype=np.bool_)
        is_new = of_cell == self.n_atoms
        cut = group[is_new]
        is_constant[cut[cut >= 0]] = False
        is_same = of_cell is self.of_cell
        first = self.representatives if is_same else first_places(of_cell)[: self.n_atoms]
        (known,) = np.nonzero(~is_new)
        of_first = first[of_cell[known]]
        coefficients, groups = coefficient[known], group[known]
        differs = (coefficients != coefficient[of_first]) | (groups != group[of_first])
        for cut in (groups[differs], group[of_first][differs]):
            is_constant[cut[cut >= 0]] = False
        return RowsOnAtoms(_spread(coefficient[first], group[first], block.n_rows), is_constant)

    def sums(self, block: QueryBlock) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """The sum of each row over the cells of each atom, and the square of each row's length.

        The rows need not be constant on the atoms. The shapes are (n_rows, n_atoms) and (n_rows,).
        None if the products of classes, or the rows, are too many to lay out.
        """
        grid = self.grid.refined([block])
        if grid.n_cells > N_GRID_CELLS_MAX or block.n_rows * self.n_atoms > N_ENTRIES_MAX:
            return None
        coefficient, group = row_signature(grid, block)
        (touched,) = np.nonzero(group >= 0)
        coefficient, group = coefficient[touched], group[touched]
        weighted = coefficient * grid.cell_sizes().ravel()[touched]
        squares = np.bincount(group, weighted * coefficient, block.n_rows).astype(np.float64)
        atom = self._on(grid)[touched]
        known = atom < self.n_atoms
        place = group[known] * self.n_atoms + atom[known]
        sums = np.bincount(place, weighted[known], block.n_rows * self.n_atoms).astype(np.float64)
        return sums.reshape(block.n_rows, self.n_atoms), squares

    def _on(self, grid: Grid) -> NDArray[np.int64]:
        """The atom of each cell of a finer grid; the number of atoms where none has the power."""
        if grid is self.grid:
            return self.of_cell
        parents = self.grid.parents(grid)
        return np.where(parents < 0, self.n_atoms, self.of_cell[parents])


def _can_be_laid_out(grid: Grid, n_blocks: int) -> bool:
    return grid.n_cells <= N_GRID_CELLS_MAX and grid.n_cells * n_blocks <= N_ENTRIES_MAX


def row_signature(grid: Grid, block: QueryBlock) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """For each grid cell: the coefficient there, and the row that it belongs to (-1 for none)."""
    coefficient = grid.coefficients(block.query).ravel()
    if block.partition is None:
        group = np.zeros(coefficient.size, dtype=np.int64)
    else:
        labels = grid.labels(block.partition.axes, block.partition.groups)
        group = np.broadcast_to(labels, grid.shape).ravel()
    outside = (group < 0) | (coefficient == 0)
    return np.where(outside, 0.0, coefficient), np.where(outside, -1, group)


def _spread(
    coefficient: NDArray[np.float64], group: NDArray[np.int64], n_rows: int
) -> NDArray[np.float64]:
    """The coefficients as a matrix, (n_rows, n_atoms): each in the row that it belongs to."""
    on_atoms = np.zeros((n_rows, coefficient.size), dtype=np.float64)
    (touched,) = np.nonzero(group >= 0)
    on_atoms[group[touched], touched] = coefficient[touched]
    return on_atoms
