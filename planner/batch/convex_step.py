"""One convex step of a batch's weights: the problem that cvxpy solves, set up once and used often.

The unknowns are the factors by which tied weights change. Setting up takes longer than solving, so
the numbers are parameters, and a row that is given up stays in the problem with no effect.
"""

import warnings
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from cube.refusals import ConfigurationInvalid

STEP_MAX = 1e3  # the largest factor by which a step changes a weight, for the solver's accuracy

Floats = NDArray[np.float64]


class ConvexStep:
    """The least cost over factors at which every query's variance is within its goal.

    minimise ``cost`` subject to ``parts @ factors**-2 <= 1``, ``loads @ factors + others <= cost``
    and ``first <= factors <= last``.

    Parameters
    ----------
    n_queries, n_atoms, n_ties : int
    """

    def __init__(self, n_queries: int, n_atoms: int, n_ties: int) -> None:
        cvxpy = _cvxpy()
        self._solver_error: type[Exception] = cvxpy.error.SolverError
        self._solver = cvxpy.CLARABEL
        self._parts = cvxpy.Parameter((n_queries, n_ties), nonneg=True)
        self._loads = cvxpy.Parameter((n_atoms, n_ties), nonneg=True)
        self._others = cvxpy.Parameter(n_atoms)
        self._first = cvxpy.Parameter(n_ties)
        self._last = cvxpy.Parameter(n_ties)
        self._factors = cvxpy.Variable(n_ties)
        inverse_squares, cost = cvxpy.Variable(n_ties), cvxpy.Variable()
        self._problem = cvxpy.Problem(
            cvxpy.Minimize(cost),
            [
                cvxpy.power(self._factors, -2) <= inverse_squares,
                self._parts @ inverse_squares <= 1,
                self._loads @ self._factors + self._others <= cost,
                self._factors >= self._first,
                self._factors <= self._last,
            ],
        )

    def factors(
        self, parts: Floats, loads: Floats, others: Floats, first: Floats, last: Floats
    ) -> Floats | None:
        """The best factors, (n_ties,); None if the solver gives up.

        Parameters
        ----------
        parts : (n_queries, n_ties) ndarray of float64
            The current share of each tie in each query's goal.
        loads : (n_atoms, n_ties) ndarray of float64
            What each tie currently costs each atom.
        others : (n_atoms,) ndarray of float64
            What else each atom costs.
        first, last : (n_ties,) ndarray of float64
            Bounds on the factors.
        """
        unit = float(loads.sum(axis=1).max())
        self._parts.value = parts
        self._loads.value = loads / unit
        self._others.value = others / unit
        self._first.value = np.maximum(first, 1 / STEP_MAX)
        self._last.value = np.minimum(last, STEP_MAX)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an inaccurate step is certified like any step
                self._problem.solve(solver=self._solver)
        except self._solver_error:
            return None
        found = self._factors.value
        if found is None or not np.isfinite(found).all():
            return None
        return np.clip(np.asarray(found, dtype=np.float64), first, last)


def _cvxpy() -> ModuleType:
    try:
        import cvxpy  # noqa: PLC0415 - an optional extra, and a second to load
    except ImportError:
        raise ConfigurationInvalid(
            "Planning a batch needs cvxpy, which is not installed.",
            hint="Install it with: pip install 'tacit-dp[plan]'",
        ) from None
    module: ModuleType = cvxpy
    return module
