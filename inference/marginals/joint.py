"""The joint table whose marginals are closest to the noisy tables.

Tables may agree wherever they overlap, and be nowhere negative, and still be the marginals of no
population: three binary columns cannot each be unequal to both others. Marginals of one joint table
are always possible.

The joint table is stored cell by cell, up to a limit on cells; beyond it there is no method here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cube.query import Scope
from cube.refusals import TooLarge
from inference.marginals.projection import disagreement, reconciled
from inference.marginals.table import (
    ConsistentTable,
    Floats,
    NoisyTable,
    Reconciled,
    Solver,
    axis_sizes,
    marginal,
    misfit,
    n_cells,
    spread,
)

N_JOINT_CELLS_MAX = 10**6  # 8 MB an array; a step then takes some 10 milliseconds for each table
N_STEPS_MIN, N_STEPS_MAX = 200, 2000
WORK_MAX = 2e9  # steps times tables times cells, some 20 seconds: limits the steps after the least
N_STEPS_BETWEEN_CHECKS = 10  # a check costs as much as a step
EXCESS_ENOUGH = 0.01  # in standard deviations of the noise, root mean square over cells
CURVATURE_FIRST = 0.01  # of the curvature that is enough for every step
CURVATURE_GROWTH, CURVATURE_DECAY = 2.0, 0.9  # after a failed step; between steps


@dataclass(frozen=True, eq=False)
class FittedJoint:
    """Counts over all cells of a few axes, fitted to tables of some of them.

    Parameters
    ----------
    scope : tuple of str
    values : (n_levels of scope[0], ...) ndarray of float64
        The count of each cell, not negative.
    excess : float
        A proved bound on the distance of these marginals from those of the best fit: root mean
        square over the cells of all tables, in units of their noise. Mostly far too large.
    """

    scope: Scope
    values: Floats
    excess: float


def reconciled_globally(tables: Sequence[NoisyTable], *, total: float | None = None) -> Reconciled:
    """The marginals of one joint table that is fitted to all tables.

    Parameters
    ----------
    tables : sequence of NoisyTable
    total : float, optional
        The number of records, where it is public; not below zero.

    Returns
    -------
    Reconciled
        Nowhere negative. `misfit` says how far the tables are from having a joint table; a value
        below 1 is explained by noise alone.
    """
    joint = fitted_joint(tables, total=total)
    values = [marginal(joint.values, joint.scope, table.scope) for table in tables]
    return Reconciled(
        tuple(
            ConsistentTable(table.scope, cells) for table, cells in zip(tables, values, strict=True)
        ),
        misfit(tables, values),
        disagreement(tables, values, total=total),
        Solver.MIRROR_DESCENT,
    )


def fitted_joint(tables: Sequence[NoisyTable], *, total: float | None = None) -> FittedJoint:
    """The joint table over all axes of `tables` whose marginals are closest to them.

    Where many are equally close, approximately the one of greatest entropy.

    Parameters
    ----------
    tables : sequence of NoisyTable
    total : float, optional
        The number of records; otherwise the best estimate of it, or 0 if that is negative.

    Notes
    -----
    Minimises ``f(p) = sum ||P_j p - M_j||**2 / (2 variance_j)`` over ``p >= 0, sum p = total`` by
    accelerated mirror descent with entropy as its distance (Auslender and Teboulle, *Interior
    gradient and proximal methods*, SIAM J. Optim. 16, 2006; restarts of O'Donoghue and Candes,
    2015). f is quadratic, so that the curvature that a step needs is known from marginals alone.

    ``p . g - total min(g)``, g the gradient at p, bounds ``f(p)`` less its minimum (Frank and
    Wolfe), and that bounds half the squared distance of marginals, weighted as in f.
    """
    if total is None:
        total = max(0.0, float(reconciled(tables).tables[0].values.sum()))
    if not 0 <= total < math.inf:
        raise ValueError("the number of records must be finite and not negative")
    descent = _Descent(tables, total)
    excess = math.inf
    affordable = int(WORK_MAX / (len(tables) * descent.joint.size))
    for step in range(min(N_STEPS_MAX, max(N_STEPS_MIN, affordable))):
        if step % N_STEPS_BETWEEN_CHECKS == 0:
            excess = descent.excess()
            if excess <= EXCESS_ENOUGH:
                break
        descent.step()
    return FittedJoint(descent.scope, descent.joint, min(excess, descent.excess()))


class _Descent:
    """Accelerated mirror descent: `joint` is its current point.

    Everything linear (marginals, and so f) follows `joint` and `mirror` by averaging; the whole
    table is passed over only to make a new `mirror` and to compute its marginals.
    """

    mirror_logs: Floats
    sums: list[Floats]
    mirror_sums: list[Floats]
    value: float
    momentum: float

    def __init__(self, tables: Sequence[NoisyTable], total: float) -> None:
        sizes = axis_sizes(tables)
        self.scope: Scope = tuple(sorted(sizes))
        if n_cells(self.scope, sizes) > N_JOINT_CELLS_MAX:
            raise TooLarge(
                f"A joint table of these columns has more than {N_JOINT_CELLS_MAX} cells.",
                hint="Ask for fewer columns, or for marginals that agree without a joint table.",
            )
        self.tables = tables
        self.total = total
        self.joint = np.full([sizes[name] for name in self.scope], 1.0)
        self.joint *= total / self.joint.size
        # Enough for every step, by Pinsker's inequality; nearly always much less is enough.
        self.curvature_max = math.fsum(1 / table.variance for table in tables)
        self.curvature = CURVATURE_FIRST * self.curvature_max
        self._begin()

    def step(self) -> None:
        """Move `joint` one step; restart the acceleration if the step increased f."""
        momentum = self.momentum
        ahead = [
            (1 - momentum) * here + momentum * there
            for here, there in zip(self.sums, self.mirror_sums, strict=True)
        ]
        slope = self._gradient(ahead)
        while True:
            shares, logs = self._mirrored(slope / (momentum * self.curvature * self.total))
            sums = self._marginals(shares * self.total)
            moved = [new - old for new, old in zip(sums, self.mirror_sums, strict=True)]
            divergence = float((shares * (logs - self.mirror_logs)).sum()) * self.total**2
            # For quadratic f, exactly the condition of the convergence proof on the curvature.
            # Where steps are so small that this is rounding, the certain bound is used instead.
            if (
                self.curvature >= self.curvature_max
                or self._half_squares(moved) <= self.curvature * divergence
            ):
                break
            self.curvature = min(self.curvature_max, CURVATURE_GROWTH * self.curvature)
        new_sums = [
            (1 - momentum) * here + momentum * there
            for here, there in zip(self.sums, sums, strict=True)
        ]
        value = self._value(new_sums)
        if value > self.value and momentum < 1:
            self._begin()
            return
        self.joint = (1 - momentum) * self.joint + momentum * self.total * shares
        self.sums, self.value = new_sums, value
        self.mirror_logs, self.mirror_sums = logs, sums
        self.momentum = 2 / (1 + math.sqrt(1 + 4 / momentum**2))
        self.curvature *= CURVATURE_DECAY

    def excess(self) -> float:
        """The bound on the distance of the marginals from the best, as in `FittedJoint`."""
        slope = self._gradient(self.sums)
        gap = float((slope * self.joint).sum()) - self.total * float(slope.min())
        n_all = sum(table.values.size for table in self.tables)
        return math.sqrt(2 * max(0.0, gap) / n_all)

    def _begin(self) -> None:
        """Set the mirror point to `joint`, without momentum."""
        floor = float(np.finfo(np.float64).tiny)  # for cells that underflowed to zero
        shares = np.maximum(self.joint, floor) / max(self.total, floor)
        self.mirror_logs = np.log(shares)
        self.sums = self._marginals(self.joint)
        self.mirror_sums = self.sums
        self.value = self._value(self.sums)
        self.momentum = 1.0

    def _mirrored(self, move: Floats) -> tuple[Floats, Floats]:
        """Shares of the total after a step along `move` from the mirror point, and their logs."""
        logs = self.mirror_logs - move
        logs -= logs.max()
        shares = np.exp(logs)
        everything = shares.sum()
        return shares / everything, logs - math.log(everything)

    def _marginals(self, joint: Floats) -> list[Floats]:
        return [marginal(joint, self.scope, table.scope) for table in self.tables]

    def _gradient(self, sums: Sequence[Floats]) -> Floats:
        slope = np.zeros_like(self.joint)
        for table, cells in zip(self.tables, sums, strict=True):
            slope += spread((cells - table.values) / table.variance, table.scope, self.scope)
        return slope

    def _value(self, sums: Sequence[Floats]) -> float:
        return self._half_squares(
            [cells - table.values for table, cells in zip(self.tables, sums, strict=True)]
        )

    def _half_squares(self, moved: Sequence[Floats]) -> float:
        return 0.5 * sum(
            float((cells**2).sum()) / table.variance
            for table, cells in zip(self.tables, moved, strict=True)
        )
