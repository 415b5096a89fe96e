"""The online best linear unbiased estimate: which weighted sum of noisy rows answers a query best.

A history of rows with weights (one over the scale of the noise) is kept in factored form, so that a
query takes a few passes over matrices, and a new row updates the factors instead of recomputing
them. Estimates are certified: the largest error of any coefficient comes with every answer.

The span of the history's rows has an orthonormal basis, over atoms weighted by their sizes. The
inner product is ``<p, q> = sum over atoms of size * p * q``, which is the ordinary one over cells:
splitting an atom copies a column and changes no inner product, so the basis stays orthonormal
however often atoms are split.

The matrices grow by rows and columns without being copied each time. The allocation grows by half
when it is full, so a thousand appends take few copies; columns that are duplicates added at the end
take no more. New columns of an append are zero in old rows.

Nothing here knows noisy values, the meaning of queries, or costs; the basis knows no weights. See
`blue.md`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg import lapack

N_ROWS_SPARE = 16  # rows of the first allocation; later ones grow by half


class GrowingMatrix:
    """A float64 matrix with spare room below and to the right.

    Parameters
    ----------
    n_columns : int
        Columns at the start; there are no rows yet.
    """

    def __init__(self, n_columns: int) -> None:
        self._n_rows = 0
        self._n_columns = n_columns
        self._room = np.zeros((0, n_columns))
        self._is_lent = False

    @property
    def values(self) -> NDArray[np.float64]:
        """The matrix, (n_rows, n_columns): a view, possibly out of date after the next change."""
        return self._room[: self._n_rows, : self._n_columns]

    @property
    def n_bytes(self) -> int:
        """The memory it uses, spare room included."""
        return self._room.nbytes

    def copy(self) -> "GrowingMatrix":
        """An equal matrix that grows independently.

        The copy shares this one's memory until it grows, and never writes there. This one only
        writes outside the part that the copy reads.
        """
        other = GrowingMatrix(self._n_columns)
        other._n_rows, other._room, other._is_lent = self._n_rows, self._room, True
        return other

    def append(self, rows: NDArray[np.float64]) -> None:
        """Append rows, at least as wide as the matrix; the matrix widens to match."""
        n_rows, n_columns = self._n_rows + rows.shape[0], rows.shape[1]
        if n_columns < self._n_columns:
            raise ValueError(
                f"the rows have {n_columns} columns, but the matrix has {self._n_columns}"
            )
        self._make_room(n_rows, n_columns)
        self._room[self._n_rows : n_rows, :n_columns] = rows
        self._n_rows, self._n_columns = n_rows, n_columns

    def gather_columns(self, sources: NDArray[np.int64]) -> None:
        """Set every column ``k`` to what column ``sources[k]`` was before.

        The number of columns stands for a column of zeros.
        """
        old = self.values
        if sources.max(initial=-1) == self._n_columns:
            old = np.pad(old, ((0, 0), (0, 1)))
        if np.array_equal(sources[: self._n_columns], np.arange(self._n_columns)):
            self._make_room(self._n_rows, sources.size)
            copies = old[:, sources[self._n_columns :]]
            self._room[: self._n_rows, self._n_columns : sources.size] = copies
            self._n_columns = sources.size
            return
        self._n_columns = sources.size
        self._room, self._is_lent = np.zeros((self._room.shape[0], sources.size)), False
        np.take(old, sources, axis=1, out=self._room[: self._n_rows])

    def _make_room(self, n_rows: int, n_columns: int) -> None:
        rows_room, columns_room = self._room.shape
        if n_rows > rows_room:
            rows_room = max(n_rows, 3 * rows_room // 2, N_ROWS_SPARE)
        if n_columns > columns_room:
            columns_room = max(n_columns, 3 * columns_room // 2, N_ROWS_SPARE)
        if self._is_lent or (rows_room, columns_room) != self._room.shape:
            old = self.values
            self._room, self._is_lent = np.zeros((rows_room, columns_room)), False
            self._room[: self._n_rows, : self._n_columns] = old


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
            raise ValueError(f"there are {parents.size} parents for {sizes.size} sizes")
        if parents.min() < 0 or parents.max() > self.n_atoms:
            raise ValueError(f"a parent is outside 0 .. {self.n_atoms}")
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
        raise ValueError("the number of cells of an atom must be positive and finite")
    checked.flags.writeable = False
    return checked


N_FACTOR_PANEL = 32  # columns LAPACK eliminates at once; fastest of 8, 32, 64 for rank 1000
N_REFINEMENTS_MAX = 4  # after the first; each gains 2 to 4 digits even with weights 1e-6 .. 1e3
RESIDUAL_ENOUGH = 1e-13  # relative to the query's largest coefficient; rounding leaves about 1e-15


@dataclass(frozen=True, eq=False)
class Combination:
    """The best linear unbiased estimates of queries, as coefficients on the rows of a history.

    Parameters
    ----------
    coefficients : (n_queries, n_rows) ndarray of float64
        ``coefficients @ rows`` are the queries; zeros for a query that is not estimable.
    estimable : (n_queries,) ndarray of bool
        Whether the query is in the span of the rows.
    residual : (n_queries,) ndarray of float64
        Largest ``|coefficients @ rows - query|`` of any atom. Times the number of records, it
        bounds the bias that rounding can cause.
    half_variance : (n_queries,) ndarray of float64
        ``sum (coefficients / weights)**2``; the variance of Laplace noise is twice that. Infinite
        for a query that is not estimable.
    """

    coefficients: NDArray[np.float64]
    estimable: NDArray[np.bool_]
    residual: NDArray[np.float64]
    half_variance: NDArray[np.float64]

    def __post_init__(self) -> None:
        n_queries = self.coefficients.shape[0]
        for part in (self.estimable, self.residual, self.half_variance):
            if part.shape != (n_queries,):
                raise ValueError(f"expected {n_queries} entries, got shape {part.shape}")


class OnlineBlue:
    """Best linear unbiased estimates from weighted noisy rows over atoms.

    Parameters
    ----------
    sizes : (n_atoms,) ndarray of float64
        The number of cells in each atom; positive.

    Notes
    -----
    With rows ``H``, weights ``w`` and a query ``q``, the coefficients minimise
    ``sum (a / w)**2`` subject to ``a @ H = q`` [1]_. In an orthonormal basis of the row space
    (``H = G U``, ``q = g U``) the solution is ``a = w**2 * (G @ x)`` with ``R.T @ R @ x = g`` and
    ``R`` the triangular factor of ``diag(w) @ G``: the corrected seminormal equations [2]_.

    References
    ----------
    .. [1] Y. Xiao, L. Xiong, "Bayesian Inference under Differential Privacy", 2012, theorem 3.1.
    .. [2] Å. Björck, "Stability analysis of the method of seminormal equations for linear least
       squares problems", Linear Algebra and its Applications 88, 1987.

    Examples
    --------
    Two equally noisy measurements of one cell are averaged, which halves the variance.

    >>> blue = OnlineBlue(np.ones(1))
    >>> blue.add(np.array([[1.0], [1.0]]), np.array([0.5, 0.5]))
    >>> combination = blue.combine(np.array([[1.0]]))
    >>> combination.coefficients.round(12), combination.half_variance.round(12)
    (array([[0.5, 0.5]]), array([2.]))
    """

    def __init__(self, sizes: NDArray[np.float64]) -> None:
        self._space = RowSpace(sizes)
        self._rows = GrowingMatrix(self._space.n_atoms)
        self._coordinates = GrowingMatrix(0)
        self._weights: NDArray[np.float64] = np.empty(0)
        self._factor: NDArray[np.float64] = np.empty((0, 0), order="F")
        self._is_fresh = True

    @property
    def n_atoms(self) -> int:
        """The number of atoms."""
        return self._space.n_atoms

    @property
    def n_rows(self) -> int:
        """The number of rows of the history."""
        return self._weights.size

    @property
    def rank(self) -> int:
        """The dimension of the span of the rows."""
        return self._space.rank

    @property
    def n_bytes(self) -> int:
        """The memory that its matrices use."""
        matrices = self._rows.n_bytes + self._coordinates.n_bytes + self._factor.nbytes
        return matrices + self._space.n_bytes

    def copy(self) -> "OnlineBlue":
        """An equal history that grows independently: for what-if questions."""
        other = OnlineBlue(self._space.sizes)
        other._space = self._space.copy()
        other._rows = self._rows.copy()
        other._coordinates = self._coordinates.copy()
        other._weights = self._weights.copy()
        other._factor = self._factor  # replaced when it changes, never written to
        other._is_fresh = self._is_fresh
        return other

    def split(self, parents: NDArray[np.int64], sizes: NDArray[np.float64]) -> None:
        """Replace the atoms by finer ones; no answer changes.

        Parameters
        ----------
        parents : (n_atoms_new,) ndarray of int64
            New atom ``k`` is a piece of old atom ``parents[k]``; of none, where that is the number
            of old atoms.
        sizes : (n_atoms_new,) ndarray of float64
            The number of cells of each piece; those of one atom add up to its size.
        """
        self._space.split(parents, sizes)
        self._rows.gather_columns(parents)

    def add(self, rows: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Append rows to the history, all at once.

        Parameters
        ----------
        rows : (k, n_atoms) ndarray of float64
            Linear queries that were measured.
        weights : (k,) ndarray of float64
            One over the Laplace scale of each.
        """
        rows = self._checked(rows)
        weights = np.array(weights, dtype=np.float64)
        if weights.shape != rows.shape[:1]:
            raise ValueError(
                f"there are {rows.shape[0]} rows, but the weights have the shape {weights.shape}"
            )
        if not np.all(np.isfinite(weights) & (weights > 0)):
            raise ValueError("a weight must be positive and finite")
        coordinates = self._space.extend(rows)
        self._rows.append(rows)
        self._coordinates.append(coordinates)
        self._weights = np.concatenate((self._weights, weights))
        self._absorb(weights[:, np.newaxis] * coordinates)

    def raise_weights(self, rows: NDArray[np.int64], weights: NDArray[np.float64]) -> None:
        """Give rows larger weights, as the same rows were measured more precisely.

        Parameters
        ----------
        rows : (k,) ndarray of int64
            Distinct places in the history.
        weights : (k,) ndarray of float64
            One over the new Laplace scale of each; none below the old one.
        """
        if rows.size and not (rows.min() >= 0 and rows.max() < self.n_rows):
            raise IndexError(f"the history has {self.n_rows} rows, but rows {rows} were named")
        before = self._weights[rows]
        if not np.all(np.isfinite(weights) & (weights >= before)):
            raise ValueError("a weight can only be raised")
        added = np.sqrt((weights - before) * (weights + before))
        self._absorb(added[:, np.newaxis] * self._coordinates.values[rows])
        self._weights[rows] = weights

    def refresh(self) -> None:
        """Recompute basis and factor from the rows, those of largest weighted length first.

        Sorting by weighted length keeps light rows accurate next to heavy ones in a Householder QR
        (Cox and Higham, "Stability of Householder QR factorization for weighted least squares
        problems", 1998). Errors do not build up between calls; but a history in an unlucky order,
        with weights far apart, gains digits from a call. A second call in a row does nothing.
        """
        if self._is_fresh:
            return
        rows, weights = self._rows.values, self._weights
        order = np.argsort(-weights * self._space.norms(rows), kind="stable")
        self._space = RowSpace(self._space.sizes)
        coordinates = self._space.extend(rows[order])
        self._factor = np.empty((0, 0), order="F")
        self._absorb(weights[order, np.newaxis] * coordinates)
        self._coordinates = GrowingMatrix(0)
        self._coordinates.append(coordinates[np.argsort(order)])
        self._is_fresh = True

    def combine(self, queries: NDArray[np.float64]) -> Combination:
        """Coefficients of least variance for queries (k, n_atoms), certified.

        Returns
        -------
        Combination
            One entry for each query, estimable or not.
        """
        queries = self._checked(queries)
        targets, distances = self._space.project(queries)
        estimable = distances <= DEPENDENCE_TOLERANCE
        coefficients = np.zeros((queries.shape[0], self.n_rows))
        coefficients[estimable] = self._solve(targets[estimable])
        missing = queries - coefficients @ self._rows.values
        self._refine(coefficients, missing, queries, estimable)
        half_variance = np.square(coefficients / self._weights).sum(axis=1)
        half_variance[~estimable] = np.inf
        return Combination(coefficients, estimable, _largest(missing), half_variance)

    def are_apart(self, sums: NDArray[np.float64], squares: NDArray[np.float64]) -> bool:
        """Whether it is certain that no combination of some rows follows from the history.

        See `RowSpace.are_apart`. Then none of them is estimable; and once all of them are measured,
        all at one weight, the rest of the history still says nothing about them.
        """
        return self._space.are_apart(sums, squares)

    def _solve(self, targets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients with ``coefficients @ coordinates = targets``, refined once."""
        coefficients = self._solve_once(targets)
        missing = targets - coefficients @ self._coordinates.values
        return coefficients + self._solve_once(missing)

    def _refine(
        self,
        coefficients: NDArray[np.float64],
        missing: NDArray[np.float64],
        queries: NDArray[np.float64],
        estimable: NDArray[np.bool_],
    ) -> None:
        """Reduce ``missing = queries - coefficients @ rows`` to rounding error, both in place.

        Coordinates are accurate in the norm over cells, which says little about an atom of one cell
        next to one of 1e12; so these steps start from the rows themselves. Most queries need none.
        """
        enough = RESIDUAL_ENOUGH * _largest(queries)
        poor = np.flatnonzero(estimable & (_largest(missing) > enough))
        for _ in range(N_REFINEMENTS_MAX):
            if not poor.size:
                return
            step = self._solve_once(self._space.project(missing[poor])[0])
            refined = coefficients[poor] + step
            left = queries[poor] - refined @ self._rows.values
            better = _largest(left) < _largest(missing[poor])
            poor = poor[better]
            coefficients[poor], missing[poor] = refined[better], left[better]
            poor = poor[_largest(missing[poor]) > enough[poor]]

    def _solve_once(self, targets: NDArray[np.float64]) -> NDArray[np.float64]:
        """The seminormal equations ``R.T @ R @ multipliers = targets``; then weight the rows."""
        if not targets.size:
            return np.zeros((targets.shape[0], self.n_rows))
        halfway = _solve_triangular(self._factor, targets.T, transposed=True)
        multipliers = _solve_triangular(self._factor, halfway, transposed=False)
        return (multipliers.T @ self._coordinates.values.T) * np.square(self._weights)

    def _absorb(self, weighted: NDArray[np.float64]) -> None:
        """Fold weighted coordinates (k, rank) into the triangular factor.

        One orthogonal reduction handles dependent rows and new directions alike; a new direction
        starts as a column of zeros.
        """
        if not weighted.size:
            return
        self._is_fresh = False
        rank = self.rank
        padded = np.zeros((rank, rank), order="F")
        known = self._factor.shape[0]
        padded[:known, :known] = self._factor
        self._factor, _, _, status = lapack.dtpqrt(
            0, min(N_FACTOR_PANEL, rank), padded, weighted, overwrite_a=True
        )
        if status:
            raise RuntimeError(f"LAPACK's dtpqrt reports {status}")

    def _checked(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_atoms:  # noqa: PLR2004 - rows and atoms
            raise ValueError(f"expected rows over {self.n_atoms} atoms, got shape {rows.shape}")
        if not np.isfinite(rows).all():
            raise ValueError("coefficients must be finite")
        return rows


def _largest(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    largest: NDArray[np.float64] = np.abs(rows).max(axis=1)
    return largest


def _solve_triangular(
    factor: NDArray[np.float64], sides: NDArray[np.float64], *, transposed: bool
) -> NDArray[np.float64]:
    solution: NDArray[np.float64]
    solution, status = lapack.dtrtrs(factor, sides, trans=int(transposed))
    if status:
        raise RuntimeError(f"LAPACK's dtrtrs reports {status}")
    return solution
