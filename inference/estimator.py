"""The estimator of one table: every measurement so far, and the posterior of any query given them.

A query is estimated on a workspace of the axes that bear on it, and, where the very same row was
measured, also from its most precise measurement alone; the narrower of the two at the confidence
asked for is the answer. Which one that is depends on weights, never on noisy values.

The estimator sees noisy values only. It keeps no data and draws nothing.
"""

from collections import OrderedDict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cube.block import QueryBlock
from cube.encoding import fingerprint
from cube.grid import Grid
from cube.measurement import Measurement
from cube.query import LinearQuery, Scope
from cube.schema import Schema
from inference.bearing import working_axes
from inference.law import law_of_noise
from inference.posterior import NotEstimable, Posterior
from inference.workspace import LinearEstimates, Workspace

N_WORKSPACES_MAX = 64  # they are rebuilt from the history at need
N_WORKSPACE_BYTES_MAX = 2**30  # of all of them but the one in use
N_WORKING_CELLS_MAX = 2**14  # products of classes in a workspace: built in a fraction of a second
N_ANSWERS_MAX = 1024  # remembered until the next measurement, for dashboards that ask again
SCALE_BITS = 30  # scales are rounded up to so many bits: wider by a billionth, and laws are shared
SCALE_MIN = (
    1e-13  # relative to the largest; what is smaller is rounding and needs no term of its own
)
BIAS_SHARE_MAX = 1e-6  # of the half-width; beyond it the factorisation is refreshed

RowEstimate = Posterior | NotEstimable


class Estimator:
    """Posteriors of linear queries on one table."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._history: list[Measurement] = []
        self._best: dict[str, Measurement] = {}
        self._scopes: set[Scope] = set()
        axes = tuple(sorted(schema.by_name))
        self._classes = Grid.undivided(axes, schema.sizes(axes))
        self._workspaces: OrderedDict[Scope, tuple[Workspace, int]] = OrderedDict()
        self._axes: dict[Scope, Scope] = {}
        self._answers: OrderedDict[tuple[str, float], tuple[RowEstimate, ...]] = OrderedDict()

    @property
    def n_measurements(self) -> int:
        """The number of measurements taken in."""
        return len(self._history)

    def add(self, measurements: Sequence[Measurement]) -> None:
        """Append measurements to the history."""
        for measurement in measurements:
            self._history.append(measurement)
            self._scopes.add(measurement.block.scope)
            row = fingerprint(measurement.block)
            best = self._best.get(row)
            if best is None or best.noise_scale > measurement.noise_scale:
                self._best[row] = measurement
        self._classes = self._classes.refined(measurement.block for measurement in measurements)
        if measurements:
            self._axes.clear()
            self._answers.clear()

    def estimate(self, block: QueryBlock, confidence: float) -> tuple[RowEstimate, ...]:
        """The posterior of each row of a block, as narrow as possible at a confidence.

        Parameters
        ----------
        block : QueryBlock
            May have rational coefficients and a constant.
        confidence : float
            Where two estimates are at hand, the narrower at this confidence is taken.

        Returns
        -------
        tuple of (Posterior or NotEstimable), one a row
        """
        asked = (fingerprint(block), confidence)
        known = self._answers.get(asked)
        if known is None:
            known = self._answers[asked] = self._estimate(block, confidence)
            if len(self._answers) > N_ANSWERS_MAX:
                self._answers.popitem(last=False)
        return known

    def _estimate(self, block: QueryBlock, confidence: float) -> tuple[RowEstimate, ...]:
        measured, multiplier = block.primitive
        scaling = _Scaling(float(multiplier), float(block.query.constant), self._range_of(block))
        if block.query.is_constant:
            return (scaling.constant(),) * block.n_rows
        alone = self._alone(measured, scaling)
        together = self._together(measured, scaling, confidence)
        return tuple(
            _narrower(first, second, confidence)
            for first, second in zip(together, alone, strict=True)
        )

    def _alone(self, block: QueryBlock, scaling: "_Scaling") -> Sequence[RowEstimate]:
        """From the most precise measurement of the very same rows."""
        best = self._best.get(fingerprint(block))
        if best is None:
            return (NotEstimable("these rows were never measured"),) * block.n_rows
        scale = np.array([best.noise_scale])
        return [scaling.posterior(float(value), scale, best.lattice_step) for value in best.values]

    def _together(
        self, block: QueryBlock, scaling: "_Scaling", confidence: float
    ) -> Sequence[RowEstimate]:
        """From every row that bears on the query."""
        workspace = self._workspace(block.scope)
        estimates = workspace.estimate(block)
        if estimates is None:
            return (NotEstimable("too many rows to combine with the history"),) * block.n_rows
        posteriors = self._posteriors(workspace, estimates, scaling)
        if self._bias_is_too_large(estimates, posteriors, scaling, confidence):
            workspace.refresh()
            estimates = workspace.estimate(block) or estimates
            posteriors = self._posteriors(workspace, estimates, scaling)
        return posteriors

    def _posteriors(
        self, workspace: Workspace, estimates: LinearEstimates, scaling: "_Scaling"
    ) -> list[RowEstimate]:
        bias = estimates.residual * self._schema.n_records_max
        result: list[RowEstimate] = []
        for place, coefficients in enumerate(estimates.coefficients):
            if not estimates.is_estimable[place]:
                result.append(NotEstimable("the history does not determine it"))
                continue
            size = np.abs(coefficients)
            value = float(coefficients @ workspace.values)
            scales = without_dust(size * workspace.noise_scales)
            widening = float(size @ workspace.lattice_steps) + float(bias[place])
            result.append(scaling.posterior(value, scales, widening))
        return result

    def _bias_is_too_large(
        self,
        estimates: LinearEstimates,
        posteriors: Sequence[RowEstimate],
        scaling: "_Scaling",
        confidence: float,
    ) -> bool:
        bias = estimates.residual * self._schema.n_records_max * abs(scaling.multiplier)
        return any(
            isinstance(posterior, Posterior)
            and bias[place] > BIAS_SHARE_MAX * posterior.half_width(confidence)
            for place, posterior in enumerate(posteriors)
        )

    def _workspace(self, scope: Scope) -> Workspace:
        """A workspace for a query of `scope`, brought up to date with the history."""
        axes = self._axes.get(scope)
        if axes is None:
            n_classes = dict(zip(self._classes.axes, self._classes.shape, strict=True))
            axes = working_axes(scope, self._scopes, n_classes, n_cells_max=N_WORKING_CELLS_MAX)
            self._axes[scope] = axes
        workspace, n_seen = self._workspaces.pop(axes, (None, 0))
        if workspace is None:
            workspace = Workspace(axes, self._schema.sizes(axes))
        within = set(axes)
        workspace.add([one for one in self._history[n_seen:] if within.issuperset(one.block.scope)])
        self._workspaces[axes] = (workspace, len(self._history))
        self._forget_workspaces()
        return workspace

    def _forget_workspaces(self) -> None:
        """Let go of what was used longest ago, until the limits are kept."""
        n_bytes = sum(workspace.n_bytes for workspace, _ in self._workspaces.values())
        while len(self._workspaces) > 1 and (
            len(self._workspaces) > N_WORKSPACES_MAX or n_bytes > N_WORKSPACE_BYTES_MAX
        ):
            _, (forgotten, _) = self._workspaces.popitem(last=False)
            n_bytes -= forgotten.n_bytes

    def _range_of(self, block: QueryBlock) -> tuple[float, float]:
        """The public range of the answer: no table has more than ``n_records_max`` records."""
        low, high = coefficient_range(block.query)
        n_records = self._schema.n_records_max
        constant, zero = block.query.constant, Fraction(0)
        return float(min(low, zero) * n_records + constant), float(
            max(high, zero) * n_records + constant
        )


class _Scaling:
    """From estimates of a measured row to posteriors of the query that is a multiple of it."""

    def __init__(
        self, multiplier: float, constant: float, public_range: tuple[float, float]
    ) -> None:
        self.multiplier = multiplier
        self._constant = constant
        self._low, self._high = public_range

    def posterior(self, value: float, scales: NDArray[np.float64], widening: float) -> Posterior:
        size = abs(self.multiplier)
        return Posterior(
            value=self.multiplier * value + self._constant,
            law=law_of_noise(rounded_up(size * scales)),
            lattice_widening=size * widening,
            low=self._low,
            high=self._high,
        )

    def constant(self) -> Posterior:
        return Posterior(value=self._constant, law=law_of_noise(np.empty(0)))


def without_dust(scales: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scales that matter, the largest of them taking over what the others add up to.

    Never narrower: of two sums of alike symmetric log-concave variables, the one whose scales
    majorize the other's is the less peaked (Proschan, "Peakedness of distributions of convex
    combinations", Annals of Mathematical Statistics 36, 1965).

    >>> without_dust(np.array([1e-15, 2.0, 0.0, 1.0]))
    array([2., 1.])
    """
    matters = scales > SCALE_MIN * scales.max(initial=0.0)
    kept: NDArray[np.float64] = scales[matters]
    if kept.size:
        kept[kept.argmax()] += scales[~matters].sum()
    return kept


def rounded_up(scales: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scales rounded up to a few bits, so that equal noise has equal numbers.

    A larger scale makes ``|X|`` stochastically larger (its law is symmetric and unimodal), so the
    rounding can only widen an interval.
    """
    mantissa, exponent = np.frexp(scales)
    rounded = np.ldexp(np.ceil(np.ldexp(mantissa, SCALE_BITS)), exponent - SCALE_BITS)
    return np.asarray(rounded, dtype=np.float64)


def coefficient_range(query: LinearQuery) -> tuple[Fraction, Fraction]:
    """Bounds on the coefficients of a query's cells, by interval arithmetic on its factors."""
    low = high = Fraction(0)
    for term in query.terms:
        ends = [term.scale, term.scale]
        for factor in term.factors:
            values = (int(factor.values.min()), int(factor.values.max()))
            products = [end * value for end in ends for value in values]
            ends = [min(products), max(products)]
        low, high = low + ends[0], high + ends[1]
    return low, high


def _narrower(first: RowEstimate, second: RowEstimate, confidence: float) -> RowEstimate:
    if isinstance(first, NotEstimable):
        return second
    if isinstance(second, NotEstimable):
        return first
    return first if first.half_width(confidence) <= second.half_width(confidence) else second
