"""Finds the weight of each candidate row of a batch by convex optimisation.

One convex step of a batch's weights: the problem that cvxpy solves, set up once and used often.

The unknowns are the factors by which tied weights change. Setting up takes longer than solving, so
the numbers are parameters, and a row that is given up stays in the problem with no effect.

Numbers only: rows and queries are coefficients on atoms, and a solution is a weight for every row.
The weights minimise the largest cost of an atom, while every query's half-width, computed from the
exact law of its noise, meets its target. The problem is not convex: the result is the best of
several local optima, certified, and never worse than the best start.

Nothing here knows SQL, measurements or budgets, and nothing is random.
"""

import math
import warnings
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cube.pace import checkpoint
from cube.runtime import cached_property
from inference import without_dust
from inference.blue import OnlineBlue
from inference.noise_law import law_of_noise
from planner.measuring import LATTICE_SHARE, ROUNDING_MARGIN

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
        cvxpy: Any = import_module("cvxpy")  # here, because loading it takes a second

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


N_ROUNDS_MAX = 16  # of certifying; most starts settle in six to ten
N_STEPS = 4  # convex steps between two certifications: weights move, the shape of laws hardly
SETTLED = 2e-4  # a gain below this is not worth another round
FADED = 1e-5  # relative to the largest weight; a row below this is given up
SHRUNK = 0.7  # share of rows left at which the convex problem is worth setting up again
MARGIN = 1e-9  # certified half-widths stay this far below their goals, to absorb rounding
N_HALVINGS = 40  # of an interval of scalings; doubles resolve no more
Groups = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WeightProblem:
    """Candidate rows, and the queries that they must answer.

    Parameters
    ----------
    rows : (k, n_atoms) ndarray of float64
        Coefficients of the candidate rows.
    bought : (k,) ndarray of float64
        The weight that each row has already; 0 for a row that was never measured.
    is_fixed : (k,) ndarray of bool
        Whether the row keeps its present weight.
    lattice_steps : (k,) ndarray of float64
        The lattice step of a row that has a weight (raising a row keeps its lattice step); else 0.
    ties : (k,) ndarray of int64
        Rows of one tie have one weight.
    queries : (m, n_atoms) ndarray of float64
    half_widths, confidences : (m,) ndarray of float64
        The target of each query.
    paid : (n_atoms,) ndarray of float64
        The privacy loss so far of one record of each atom, including the rows with a weight.
    """

    rows: Floats
    bought: Floats
    is_fixed: NDArray[np.bool_]
    lattice_steps: Floats
    ties: Groups
    queries: Floats
    half_widths: Floats
    confidences: Floats
    paid: Floats

    def __post_init__(self) -> None:
        k, n_atoms = self.rows.shape
        m = self.queries.shape[0]
        shapes = {
            "bought": (self.bought, (k,)),
            "is_fixed": (self.is_fixed, (k,)),
            "lattice_steps": (self.lattice_steps, (k,)),
            "ties": (self.ties, (k,)),
            "queries": (self.queries, (m, n_atoms)),
            "half_widths": (self.half_widths, (m,)),
            "confidences": (self.confidences, (m,)),
            "paid": (self.paid, (n_atoms,)),
        }
        for name, (array, shape) in shapes.items():
            if array.shape != shape:
                raise ValueError(f"{name} has shape {array.shape}, not {shape}")
        if (self.bought < 0).any() or (self.bought[self.is_fixed] == 0).any():
            raise ValueError("weights must not be negative, and every fixed row must have a weight")
        if not ((self.half_widths > 0).all() and m):
            raise ValueError("at least one query is needed, and every half-width must be positive")

    @cached_property
    def loads(self) -> Floats:
        """What one unit of each row's weight costs each atom, (k, n_atoms)."""
        return np.abs(self.rows)

    def cost(self, weights: Floats) -> float:
        """The largest cost of an atom at `weights`, (k,)."""
        return float((self.paid + (weights - self.bought) @ self.loads).max())

    def tied(self, ties: Groups) -> "WeightProblem":
        """The same problem with other ties."""
        return replace(self, ties=ties)

    def on(self, used: NDArray[np.bool_]) -> "WeightProblem":
        """The problem restricted to the used rows, (k,), which include every row with a weight."""
        if (self.bought[~used] > 0).any():
            raise ValueError("a row that was paid for cannot be left out of the problem")
        return replace(
            self,
            rows=self.rows[used],
            bought=self.bought[used],
            is_fixed=self.is_fixed[used],
            lattice_steps=self.lattice_steps[used],
            ties=self.ties[used],
        )


@dataclass(frozen=True, eq=False)
class Certificate:
    """The half-widths and deviations that a set of weights is proved to give.

    Parameters
    ----------
    half_widths : (m,) ndarray of float64
        By the exact law of each query's noise, lattice and rounding included.
    deviations : (m,) ndarray of float64
        Standard deviations over the square root of 2.
    """

    half_widths: Floats
    deviations: Floats


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights (k,) that meet every target, the half-width of each query then, and the cost."""

    weights: Floats
    half_widths: Floats
    cost: float


def combination(problem: WeightProblem, weights: Floats) -> Floats | None:
    """Coefficients (m, k) of the best linear unbiased estimates; None if a query has none."""
    used = weights > 0
    blue = OnlineBlue(np.ones(problem.rows.shape[1]))
    if not used.any():
        return None
    blue.add(problem.rows[used], weights[used])
    found = blue.combine(problem.queries)
    if not found.estimable.all():
        return None
    coefficients = np.zeros((problem.queries.shape[0], weights.size))
    coefficients[:, used] = found.coefficients
    return coefficients


def certified(problem: WeightProblem, weights: Floats) -> Certificate | None:
    """The half-width of every query at `weights`; None if a query is not determined."""
    coefficients = combination(problem, weights)
    if coefficients is None:
        return None
    used = weights > 0
    scales = np.abs(coefficients[:, used]) / weights[used] * (1 + ROUNDING_MARGIN)
    steps = np.maximum(LATTICE_SHARE, problem.lattice_steps[used] * weights[used])
    half_widths = [
        law_of_noise(without_dust(of_query)).half_width(float(confidence)) + float(of_query @ steps)
        for of_query, confidence in zip(scales, problem.confidences, strict=True)
    ]
    return Certificate(np.array(half_widths), np.sqrt(np.square(scales).sum(axis=1)))


def scaled_to_meet(problem: WeightProblem, weights: Floats) -> Solution | None:
    """`weights`, their new part scaled by the least factor at which every query is met.

    None if these rows do not determine every query. Weight that was bought before stays as it is.
    """
    added = np.where(problem.is_fixed, 0.0, np.maximum(weights - problem.bought, 0.0))
    known = certified(problem, problem.bought)
    if known is not None and _worst(problem, known) <= 1:
        return Solution(problem.bought, known.half_widths, problem.cost(problem.bought))
    first = certified(problem, problem.bought + added)
    if first is None or not added.any():
        return None
    factor = _worst(problem, first) / (1 - MARGIN)
    if problem.bought.any():
        factor = _least_factor(problem, added, factor)
    found = problem.bought + factor * added
    certificate = certified(problem, found)
    if certificate is None or _worst(problem, certificate) > 1:
        return None
    return Solution(found, certificate.half_widths, problem.cost(found))


def _least_factor(problem: WeightProblem, added: Floats, guess: float) -> float:
    """By bisection, as weights bought before do not scale: to within a millionth."""

    def is_met(factor: float) -> bool:
        checkpoint()
        found = certified(problem, problem.bought + factor * added)
        return found is not None and _worst(problem, found) <= 1 - MARGIN

    high = guess
    while not is_met(high):
        high *= 2.0
    low = high / 2.0
    while is_met(low) and low > guess * 2.0**-N_HALVINGS:
        low, high = low / 2.0, low
    while high > low * (1 + 1e-6):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_met(middle) else (middle, high)
    return high


def _worst(problem: WeightProblem, certificate: Certificate) -> float:
    return float((certificate.half_widths / problem.half_widths).max())


def improved(
    problem: WeightProblem,
    start: Floats,
    *,
    n_rounds: int = N_ROUNDS_MAX,
    settled: float = SETTLED,
) -> Solution | None:
    """The best weights found in the descent from `start`; None if the start cannot meet a target.

    There are at most `n_rounds` rounds; a round that gains less than the share `settled` of the
    cost is the last.

    Notes
    -----
    With the coefficients ``A`` of the estimates held fixed, the variance of a query is
    ``sum (A / w)**2``, which is convex in the weights, while the cost is linear in them: a convex
    problem without approximation, with one three-dimensional cone for a weight whatever the number
    of queries. `A` is then chosen anew for the new weights, which lowers every variance, so the
    two steps majorise and minimise one another. (With `A` among the unknowns as well, the cost
    becomes concave in the squared weights; that problem is larger by a factor of the number of
    queries and ends no lower.)

    The law of a query's noise turns its half-width into a goal for its variance. As the weights
    move, so do the laws; the goals follow them.
    """
    solution = best = scaled_to_meet(problem, start)
    descent = _Descent(problem)
    for _ in range(n_rounds):
        checkpoint()
        if solution is None or best is None:
            return best
        weights = descent.lowered(solution)
        if weights is None:
            return best
        before = best.cost
        solution = scaled_to_meet(problem, weights)
        if solution is not None and solution.cost < best.cost:
            best = solution
        if best.cost > before * (1 - settled) and solution is not None:
            return best
    return best


class _Descent:
    """Convex steps from one start, on a problem that is set up again as rows are given up."""

    def __init__(self, problem: WeightProblem) -> None:
        self._problem = problem
        self._rows: Groups = np.empty(0, dtype=np.int64)
        self._ties: Groups = self._rows
        self._step: ConvexStep | None = None

    def lowered(self, solution: Solution) -> Floats | None:
        """The weights after a few steps, towards the goals that the current laws set."""
        weights = solution.weights
        goals: Floats | None = None
        for _ in range(N_STEPS):
            coefficients = combination(self._problem, weights)
            if coefficients is None:
                return None
            used = weights > 0
            parts = np.zeros_like(coefficients)
            parts[:, used] = np.square(coefficients[:, used] / weights[used])
            if goals is None:
                shapes = solution.half_widths / np.sqrt(parts.sum(axis=1))
                goals = np.square(self._problem.half_widths / shapes)
            stepped = self._stepped(weights, parts / goals[:, np.newaxis])
            if stepped is None:
                return weights
            weights = stepped
        return weights

    def _stepped(self, weights: Floats, parts: Floats) -> Floats | None:
        """Weights of least cost with ``sum parts * (old / new)**2 <= 1`` for every query."""
        problem = self._problem
        step = self._set_up(weights > 0)
        rows, ties = self._rows, self._ties
        n_ties = int(ties.max()) + 1
        old = weights[rows]
        by_tie = np.zeros((rows.size, n_ties))
        by_tie[np.arange(rows.size), ties] = 1.0
        first, last = np.zeros(n_ties), np.full(n_ties, STEP_MAX)
        np.maximum.at(first, ties, np.divide(problem.bought[rows], old, where=old > 0, out=0 * old))
        np.minimum.at(last, ties, np.where(problem.is_fixed[rows], 1.0, STEP_MAX))
        factors = step.factors(
            parts[:, rows] @ by_tie,
            (old[:, np.newaxis] * problem.loads[rows]).T @ by_tie,
            problem.paid - problem.bought @ problem.loads,
            first,
            last,
        )
        if factors is None:
            return None
        found = np.zeros_like(weights)
        found[rows] = old * factors[ties]
        found[(found < FADED * found.max()) & (problem.bought == 0)] = 0.0
        return np.maximum(found, problem.bought)

    def _set_up(self, used: NDArray[np.bool_]) -> ConvexStep:
        if self._step is None or used.sum() < SHRUNK * self._rows.size:
            self._rows = np.flatnonzero(used)
            _, ties = np.unique(self._problem.ties[self._rows], return_inverse=True)
            self._ties = ties.astype(np.int64)
            n_queries, n_atoms = self._problem.queries.shape
            self._step = ConvexStep(n_queries, n_atoms, int(self._ties.max()) + 1)
        return self._step
