"""The online best linear unbiased estimate: which weighted sum of noisy rows answers a query best.

A history of rows with weights (one over the scale of the noise) is kept in factored form, so that a
query takes a few passes over matrices, and a new row updates the factors instead of recomputing
them. Estimates are certified: the largest error of any coefficient comes with every answer.

Nothing here knows noisy values, the meaning of queries, or costs. See `blue.md`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from inference.blue.growing_matrix import GrowingMatrix
from inference.blue.row_space import DEPENDENCE_TOLERANCE, RowSpace

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
            raise ValueError(f"{rows.shape[0]} rows with weights of shape {weights.shape}")
        if not np.all(np.isfinite(weights) & (weights > 0)):
            raise ValueError("a weight is positive and finite")
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
            raise IndexError(f"rows {rows} of a history of {self.n_rows}")
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
            raise ValueError("coefficients are finite")
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
