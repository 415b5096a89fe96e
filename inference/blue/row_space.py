"""An orthonormal basis of the span of the history's rows, over atoms weighted by their sizes.

The inner product is ``<p, q> = sum over atoms of size * p * q``, which is the ordinary one over
cells: splitting an atom copies a column and changes no inner product, so the basis stays
orthonormal however often atoms are split.

It knows rows, not their noisy values or weights.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from inference.blue.growing_matrix import GrowingMatrix

DEPENDENCE_TOLERANCE = 1e-9  # relative; between rounding (1e-14) and real differences of rows
SIZE_ROUNDING = 1e-9  # relative; for the sum of the sizes of an atom's pieces
APART = 1e-6  # squared; far above rounding, and below nearly every real distance from the span
N_PANEL_ROWS = 64  # rows made orthogonal at once: matrix products outside, a pivoted QR inside


class RowSpace:
    """The span of rows over atoms, as an orthonormal basis that only grows.

    Parameters
    ----------
    sizes : (n_atoms,) ndarray of float64
        The number of cells in each atom; positive.
    """

    def __init__(self, sizes: NDArray[np.float64]) -> None:
        self.sizes: NDArray[np.float64] = _checked_sizes(sizes)
        self._basis = GrowingMatrix(self.sizes.size)

    @property
    def n_atoms(self) -> int:
        """The number of atoms."""
        return len(self.sizes)

    @property
    def rank(self) -> int:
        """The dimension of the span."""
        return len(self.basis)

    @property
    def basis(self) -> NDArray[np.float64]:
        """Orthonormal rows, (rank, n_atoms): ``basis * sizes @ basis.T`` is the identity."""
        return self._basis.values

    @property
    def n_bytes(self) -> int:
        """The memory it uses."""
        return self._basis.n_bytes

    def copy(self) -> "RowSpace":
        """An equal space that grows independently."""
        other = RowSpace(self.sizes)
        other._basis = self._basis.copy()
        return other

    def split(self, parents: NDArray[np.int64], sizes: NDArray[np.float64]) -> None:
        """Replace the atoms by finer ones: new atom ``k`` is a piece of old atom ``parents[k]``.

        The number of old atoms stands for none: rows are 0 on such an atom.
        """
        sizes = _checked_sizes(sizes)
        if parents.shape != sizes.shape:
            raise ValueError(f"{parents.size} parents for {sizes.size} sizes")
        if parents.min() < 0 or parents.max() > self.n_atoms:
            raise ValueError(f"a parent outside 0 .. {self.n_atoms}")
        together = np.bincount(parents, weights=sizes, minlength=self.n_atoms)[: self.n_atoms]
        if np.any(np.abs(together - self.sizes) > SIZE_ROUNDING * self.sizes):
            raise ValueError("the sizes of an atom's pieces must add up to its size")
        self._basis.gather_columns(parents)
        self.sizes = sizes

    def norms(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The length of each row, (k,)."""
        return np.sqrt(np.square(rows) @ self.sizes)

    def project(self, rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Coordinates of rows (k, n_atoms) in the basis, and their distances from the span.

        Returns
        -------
        coordinates : (k, rank) ndarray of float64
        distances : (k,) ndarray of float64
            Length of the part outside the span, relative to the row's length; 0 for a row of zeros.
            For a row inside the span, rounding leaves about 1e-15: one pass is enough to decide.
        """
        coordinates = (rows * self.sizes) @ self.basis.T
        outside = self.norms(rows - coordinates @ self.basis)
        lengths = self.norms(rows)
        return coordinates, np.divide(
            outside, lengths, out=np.zeros_like(lengths), where=lengths > 0
        )

    def are_apart(self, sums: NDArray[np.float64], squares: NDArray[np.float64]) -> bool:
        """Whether it is certain that no combination of some rows but zero is in the span.

        Parameters
        ----------
        sums : (k, n_atoms) ndarray of float64
            The sum of each row over the cells of each atom; a row may vary within an atom.
        squares : (k,) ndarray of float64
            The square of each row's length; the rows share no cell.
        """
        if not squares.all():
            return False
        inside = (sums @ self.basis.T) / np.sqrt(squares)[:, np.newaxis]
        # The Gram matrix of the rows' parts outside the span: apart if no direction of it is short.
        outside = np.eye(squares.size) - inside @ inside.T
        return bool(np.linalg.eigvalsh(outside)[0] > APART)

    def extend(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Extend the span to include rows (k, n_atoms); return their coordinates, (k, new rank).

        A row within `DEPENDENCE_TOLERANCE` of the span, extended by the block's other rows, adds no
        direction. The first rows of a span that share no atom (mostly a partition) are directions
        already and take no algebra.
        """
        lengths = self.norms(rows)
        n_apart = 0 if self.rank else _n_sharing_nothing(rows)
        if n_apart:
            self._basis.append(rows[:n_apart] / lengths[:n_apart, np.newaxis])
        for start in range(n_apart, rows.shape[0], N_PANEL_ROWS):
            self._basis.append(self._new_directions(rows[start : start + N_PANEL_ROWS]))
        coordinates = np.zeros((rows.shape[0], self.rank))
        coordinates[range(n_apart), range(n_apart)] = lengths[:n_apart]
        rest = rows[n_apart:]
        found = (rest * self.sizes) @ self.basis.T
        # The second pass removes the rounding of the first one from rest = found @ basis.
        found += ((rest - found @ self.basis) * self.sizes) @ self.basis.T
        coordinates[n_apart:] = found
        return coordinates

    def _new_directions(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Orthonormal directions, (d, n_atoms), that rows (k, n_atoms) add to the span."""
        lengths = self.norms(rows)
        rows = rows[lengths > 0] / lengths[lengths > 0, np.newaxis]
        outside = self._without_span(rows)
        if self.norms(outside).max(initial=0.0) <= DEPENDENCE_TOLERANCE:
            return np.empty((0, self.n_atoms))
        outside = self._without_span(outside)
        # With pivoting, a diagonal entry is what is left of a row of length 1 after the rows chosen
        # before it are projected out: the same relative test as for a single row, over the panel.
        roots = np.sqrt(self.sizes)
        directions, triangle, _ = linalg.qr(
            (outside * roots).T, mode="economic", pivoting=True, check_finite=False
        )
        is_new = np.abs(np.diagonal(triangle)) > DEPENDENCE_TOLERANCE
        found = self._without_span(directions.T[is_new] / roots)
        # A nearly dependent row is magnified, and with it the rounding of the span; hence the pass
        # just made, and a second QR to restore unit lengths after it.
        directions, _ = linalg.qr((found * roots).T, mode="economic", check_finite=False)
        return directions.T / roots

    def _without_span(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return rows - ((rows * self.sizes) @ self.basis.T) @ self.basis


def _n_sharing_nothing(rows: NDArray[np.float64]) -> int:
    """How many leading rows are not zero and share no atom with a row before them."""
    touched = rows != 0
    n_touching = touched.cumsum(axis=0, dtype=np.int32)
    is_apart = ~(touched & (n_touching > 1)).any(axis=1) & touched.any(axis=1)
    return int(is_apart.argmin()) if not is_apart.all() else len(rows)


def _checked_sizes(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    checked = np.array(sizes, dtype=np.float64)
    if checked.ndim != 1 or not checked.size:
        raise ValueError("sizes must be a vector with at least one atom")
    if not np.all(np.isfinite(checked) & (checked > 0)):
        raise ValueError("an atom has a positive, finite number of cells")
    checked.flags.writeable = False
    return checked
