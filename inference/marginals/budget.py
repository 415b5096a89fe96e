"""The best division of a budget among marginals that are declared in advance.

There are two ways to measure them. Plain tables with Laplace noise, each at its own weight: pure
epsilon, and ordinary rows of the history. Residuals with Gaussian noise: every interaction of the
declared tables is measured once, at its own variance, and serves all tables that contain it.

Numbers only, from public sizes and importances; purchases are decided and charged elsewhere.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from cube.measurement import UNITS_PER_EPSILON, Weight
from cube.query import Scope, check_scope
from cube.refusals import TooLarge

N_RESIDUALS_MAX = 2**16  # a table of k axes has 2**k residuals


@dataclass(frozen=True, slots=True)
class DeclaredMarginal:
    """A table that will be queried, and the importance of its cells' variances.

    Parameters
    ----------
    scope : tuple of str
    importance : float
        Factor of the table's summed variance in the objective; positive.
    """

    scope: Scope
    importance: float = 1.0

    def __post_init__(self) -> None:
        check_scope(self.scope)
        if not 0 < self.importance < math.inf:
            raise ValueError(f"an importance must be positive and finite, not {self.importance}")


@dataclass(frozen=True, slots=True, eq=False)
class ResidualPlan:
    """The variance at which to measure each residual.

    Parameters
    ----------
    variances : dict of tuple of str to float
        For each subset of a declared scope, sorted; `residual_plan` defines these variances.
    total_variance : float
        The least possible sum of importance times variance, over all declared cells.
    """

    variances: dict[Scope, float]
    total_variance: float

    def cell_variance(self, scope: Scope, sizes: Mapping[str, int]) -> float:
        """The variance of each cell of the marginal on `scope`, a subset of a declared one."""
        cells = _n_cells(scope, sizes)
        parts = (
            self.variances[part] * _n_cells(part, sizes) * _n_contrasts(part, sizes)
            for part in _subsets(scope)
        )
        return math.fsum(parts) / cells**2


def laplace_weights(
    marginals: Sequence[DeclaredMarginal],
    sizes: Mapping[str, int],
    budget: Fraction,
    known: Sequence[Fraction] = (),
) -> tuple[Weight | None, ...]:
    """The additions to the weights of plain tables with the least summed variance for a budget.

    Parameters
    ----------
    marginals : sequence of DeclaredMarginal
        At least one; each is measured as a table of its own.
    sizes : mapping of str to int
        The number of levels of each axis.
    budget : Fraction
        Epsilon; the sum of the additions does not exceed it.
    known : sequence of Fraction
        The weight that each table has already; 0 by default.

    Returns
    -------
    tuple of Weight or None
        None where nothing is added.

    Notes
    -----
    A table of n cells at weight w has summed variance ``2 n / w**2``, and every cell of the cube is
    in one cell of each table, so that weights add up. Where ``sum c n 2 / w**2`` is least for a
    given sum of additions, the derivatives ``-4 c n / w**3`` of all tables with an addition are
    equal: w is proportional to ``(c n)**(1/3)``, except for tables that weigh more than that
    already.

    What tables say about each other's marginals is ignored; including it, the problem is not
    convex.

    Examples
    --------
    >>> pair = [DeclaredMarginal(("a",)), DeclaredMarginal(("b",))]
    >>> [one.exact for one in laplace_weights(pair, {"a": 1, "b": 8}, Fraction(3, 2)) if one]
    [Fraction(1, 2), Fraction(1, 1)]
    """
    before = list(known) or [Fraction(0)] * len(marginals)
    shares = [Fraction(math.cbrt(one.importance * _n_cells(one.scope, sizes))) for one in marginals]
    order = sorted(range(len(shares)), key=lambda place: before[place] / shares[place])
    # Water filling: raise the lowest level first, then all levels that are reached evenly.
    height, volume, width = Fraction(0), budget, Fraction(0)
    for place in order:
        level = before[place] / shares[place]
        if width and volume <= (level - height) * width:
            break
        volume -= (level - height) * width
        height, width = level, width + shares[place]
    height += volume / width
    added = (height * share - held for share, held in zip(shares, before, strict=True))
    # Rounded down: the sum must stay within the budget.
    units = [math.floor(max(one, Fraction(0)) * UNITS_PER_EPSILON) for one in added]
    return tuple(Weight(one) if one > 0 else None for one in units)


def residual_plan(
    marginals: Sequence[DeclaredMarginal], sizes: Mapping[str, int], privacy_cost: float
) -> ResidualPlan:
    """The variances of Gaussian residuals that give the tables the least summed variance.

    Parameters
    ----------
    marginals : sequence of DeclaredMarginal
        The declared marginals, at least one.
    sizes : mapping of str to int
        The number of levels of each axis.
    privacy_cost : float
        The square of the Gaussian mechanism's sensitivity over its standard deviation, for all
        measurements together; twice the rho of zero-concentrated differential privacy.

    Notes
    -----
    The residual of a set A is the marginal on A, times for each axis the matrix D of differences of
    neighbouring levels, with noise of covariance ``v_A D D'`` (a Kronecker product over axes).
    Residuals are orthogonal; centred along its axes, that of A has covariance ``v_A`` times the
    centring matrix. With ``d_A = product of (n - 1)`` and ``p_A = d_A / |A|``, it costs
    ``p_A / v_A`` and adds ``v_A |A| d_A / |V|`` to the summed variance of a table over V. With
    ``V_A`` the sum of ``c |A| d_A / |V|`` over tables that contain A, Lagrange multipliers give ::

        v_A = sqrt(p_A / V_A) sum_B sqrt(p_B V_B) / privacy_cost

    and a summed variance of ``(sum_B sqrt(p_B V_B))**2 / privacy_cost``. Xiao, He, Zhang and Kifer,
    *An optimal and scalable matrix mechanism for noisy marginals under convex loss functions*
    (NeurIPS 2023), who show that no Gaussian mechanism does better.

    An axis of one level has no contrasts, so sets with such an axis have no residual: variance 0.
    """
    if not 0 < privacy_cost < math.inf:
        raise ValueError(f"a privacy cost must be positive and finite, not {privacy_cost}")
    loads: dict[Scope, float] = {}
    for one in marginals:
        if 2 ** len(one.scope) > N_RESIDUALS_MAX:
            raise TooLarge(
                f"A table of {len(one.scope)} columns has too many residuals.",
                hint="Declare a table of fewer columns.",
            )
        per_cell = one.importance / _n_cells(one.scope, sizes)
        for part in _subsets(one.scope):
            spread = _n_cells(part, sizes) * _n_contrasts(part, sizes)
            loads[part] = loads.get(part, 0.0) + per_cell * spread
        if len(loads) > N_RESIDUALS_MAX:
            raise TooLarge(
                f"The declared tables have more than {N_RESIDUALS_MAX} residuals.",
                hint="Declare fewer tables, or tables of fewer columns.",
            )
    prices = {part: _n_contrasts(part, sizes) / _n_cells(part, sizes) for part in loads}
    root = math.fsum(math.sqrt(prices[part] * load) for part, load in loads.items())
    variances = {
        part: math.sqrt(prices[part] / load) * root / privacy_cost if load else 0.0
        for part, load in loads.items()
    }
    return ResidualPlan(variances, root**2 / privacy_cost)


def _subsets(scope: Scope) -> Iterator[Scope]:
    for length in range(len(scope) + 1):
        yield from combinations(scope, length)


def _n_cells(scope: Scope, sizes: Mapping[str, int]) -> int:
    return math.prod(sizes[name] for name in scope)


def _n_contrasts(scope: Scope, sizes: Mapping[str, int]) -> int:
    """The dimension of the tables over `scope` that sum to zero along each axis."""
    return math.prod(sizes[name] - 1 for name in scope)
