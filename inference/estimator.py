"""The estimator of one table: every measurement so far, and the posterior of any query given them.

A query is estimated in up to three ways, and the narrowest at the confidence asked for is the
answer: from the most precise measurement of the very same row; as a sum of counted groups; and
jointly from all rows that bear on it. The joint estimate is skipped where it would be slow and
another is as narrow as was asked. All of that depends on weights, never on noisy values.

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
from inference.bearing import Bearing, rows_that_bear
from inference.history import History, counts_groups
from inference.law import law_of_noise
from inference.posterior import NotEstimable, Posterior, RowEstimate, widest
from inference.reading import N_READ_CELLS_MAX, PartitionReader, Reading
from inference.workspace import LinearEstimates, Workspace

N_WORKSPACES_MAX = 64  # they are rebuilt from the history at need
N_WORKSPACE_BYTES_MAX = 2**28  # of all of them but the one in use
N_WORKING_CELLS_MAX = 2**14  # products of classes in a workspace: built in a fraction of a second
N_WORKING_ROWS_MAX = 256  # rows from several scopes: combined in milliseconds from nothing
N_ROWS_AT_HAND = 64  # as many are always combined; more, only if nothing else is narrow enough
N_READINGS_TRIED = 4  # scopes to read a query from, the most promising first
N_ANSWERS_MAX = 1024  # remembered until the next measurement, for dashboards that ask again
SCALE_BITS = 30  # scales are rounded up to so many bits: wider by a billionth, and laws are shared
SCALE_MIN = 1e-13  # relative to the largest; less is rounding and needs no term of its own
BIAS_SHARE_MAX = 1e-6  # of the half-width; beyond it the factorisation is refreshed


class Estimator:
    """Posteriors of linear queries on one table."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._history = History()
        axes = tuple(sorted(schema.by_name))
        self._classes = Grid.undivided(axes, schema.sizes(axes))
        self._workspaces: OrderedDict[Scope, tuple[Workspace, Bearing, int]] = OrderedDict()
        self._is_fork = False
        self._bearings: dict[Scope, Bearing] = {}
        self._readers: dict[Scope, PartitionReader] = {}
        self._answers: OrderedDict[tuple[str, float], tuple[tuple[RowEstimate, ...], bool]] = (
            OrderedDict()
        )

    @property
    def n_measurements(self) -> int:
        """The number of measurements taken in."""
        return len(self._history)

    @property
    def history(self) -> History:
        """What was taken in; to be looked at only."""
        return self._history

    def fork(self) -> "Estimator":
        """A short-lived copy, to ask what would be known after some purchases."""
        other = Estimator(self._schema)
        other._history = self._history.copy()
        other._classes = self._classes
        other._workspaces = self._workspaces.copy()
        other._bearings = self._bearings.copy()
        other._readers = self._readers.copy()
        other._is_fork = True
        return other

    def add(self, measurements: Sequence[Measurement]) -> None:
        """Append measurements to the history, in the order of purchase."""
        if not measurements:
            return
        n_rows, classes = dict(self._history.n_rows), self._classes
        self._history.add(measurements)
        self._classes = classes.refined(measurement.block for measurement in measurements)
        if self._classes is not classes or self._history.n_rows != n_rows:
            self._bearings.clear()
        counted = [set(one.block.scope) for one in measurements if counts_groups(one.block)]
        for axes in list(self._readers):
            if any(scope.issubset(axes) for scope in counted):
                del self._readers[axes]
        self._answers.clear()

    def estimate(
        self, block: QueryBlock, confidence: float, half_width: float = 0.0
    ) -> tuple[RowEstimate, ...]:
        """The posterior of each row of a block.

        Parameters
        ----------
        block : QueryBlock
            May have rational coefficients and a constant.
        confidence : float
            Where several estimates are at hand, the narrowest at this confidence is taken.
        half_width : float
            What is narrow enough to leave slow ways of making it narrower untried.

        Returns
        -------
        tuple of (Posterior or NotEstimable), one a row
        """
        asked = (fingerprint(block), confidence)
        rows, is_narrowest = self._answers.get(asked, ((), False))
        if not is_narrowest and (not rows or widest(rows, confidence) > half_width):
            self._answers[asked] = rows, _ = self._estimate(block, confidence, half_width)
            if len(self._answers) > N_ANSWERS_MAX:
                self._answers.popitem(last=False)
        return rows

    def noisiest(self, block: QueryBlock) -> int | None:
        """The place of the measurement that puts most of the noise into the joint estimate."""
        measured, _ = block.primitive
        workspace = self._workspace(self._bearing(measured.scope))
        estimates = workspace.estimate(measured)
        if estimates is None or not estimates.is_estimable.all():
            return None
        variance = np.square(estimates.coefficients * workspace.noise_scales).sum(axis=0)
        return workspace.place_of(int(variance.argmax())) if variance.size else None

    def _estimate(
        self, block: QueryBlock, confidence: float, half_width: float
    ) -> tuple[tuple[RowEstimate, ...], bool]:
        """The posteriors, and whether every way was tried."""
        measured, multiplier = block.primitive
        scaling = _Scaling(float(multiplier), float(block.query.constant), self._range_of(block))
        if block.query.is_constant:
            return (scaling.constant(),) * block.n_rows, True
        rows = self._alone(measured, scaling)
        for axes in self._scopes_to_read(measured.scope):
            rows = _narrowest(rows, self._read(measured, axes, scaling), confidence)
        bearing = self._bearing(measured.scope)
        if bearing.n_rows > N_ROWS_AT_HAND and widest(rows, confidence) <= half_width:
            return rows, False
        return _narrowest(
            rows, self._together(measured, bearing, scaling, confidence), confidence
        ), True

    def _alone(self, block: QueryBlock, scaling: "_Scaling") -> tuple[RowEstimate, ...]:
        """From the most precise measurement of the very same rows."""
        place = self._history.most_precise(block)
        if place is None:
            return (NotEstimable("these rows were never measured"),) * block.n_rows
        best = self._history[place]
        scale = np.array([best.noise_scale])
        return tuple(
            scaling.posterior(float(value), scale, best.lattice_step) for value in best.values
        )

    def _scopes_to_read(self, scope: Scope) -> list[Scope]:
        """Scopes whose counted groups may add up to a query of `scope`, the least noisy first."""
        wanted = frozenset(scope)
        noise = {
            axes: n_cells * min(one.noise_scale for one in self._history.partitions_on(axes)) ** 2
            for axes in self._history.partition_scopes
            if wanted.issubset(axes) and (n_cells := self._schema.n_cells(axes)) <= N_READ_CELLS_MAX
        }
        return sorted(noise, key=lambda axes: (noise[axes], axes))[:N_READINGS_TRIED]

    def _read(self, block: QueryBlock, axes: Scope, scaling: "_Scaling") -> tuple[RowEstimate, ...]:
        """As sums of groups that were counted on `axes`."""
        reader = self._readers.get(axes)
        if reader is None:
            measured = self._history.partitions(axes)
            reader = self._readers[axes] = PartitionReader(axes, self._schema.sizes(axes), measured)
        return _posteriors_of(reader.read(block), scaling)

    def _together(
        self, block: QueryBlock, bearing: Bearing, scaling: "_Scaling", confidence: float
    ) -> tuple[RowEstimate, ...]:
        """From every row that bears on the query."""
        workspace = self._workspace(bearing)
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
    ) -> tuple[RowEstimate, ...]:
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
        return tuple(result)

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

    def _bearing(self, scope: Scope) -> Bearing:
        """The rows that a query of `scope` is estimated from."""
        bearing = self._bearings.get(scope)
        if bearing is None:
            n_classes = dict(zip(self._classes.axes, self._classes.shape, strict=True))
            bearing = self._bearings[scope] = rows_that_bear(
                scope,
                self._history.n_rows,
                n_classes,
                n_cells_max=N_WORKING_CELLS_MAX,
                n_rows_max=N_WORKING_ROWS_MAX,
            )
        return bearing

    def _workspace(self, bearing: Bearing) -> Workspace:
        """The workspace of some rows, brought up to date with the history."""
        workspace, known, n_seen = self._workspaces.pop(bearing.axes, (None, bearing, 0))
        if workspace is None or not set(known.scopes).issubset(bearing.scopes):
            workspace = Workspace(bearing.axes, self._schema.sizes(bearing.axes))
            known, n_seen = Bearing(bearing.axes, (), 0), 0
        elif self._is_fork:
            workspace = workspace.copy()
        further = sorted(set(bearing.scopes).difference(known.scopes))
        workspace.add(self._history, self._history.in_use(known.scopes, since=n_seen))
        workspace.add(self._history, self._history.in_use(further))
        self._workspaces[bearing.axes] = (workspace, bearing, len(self._history))
        self._forget_workspaces()
        return workspace

    def _forget_workspaces(self) -> None:
        """Let go of what was used longest ago, until the limits are kept."""
        n_bytes = sum(workspace.n_bytes for workspace, *_ in self._workspaces.values())
        while len(self._workspaces) > 1 and (
            len(self._workspaces) > N_WORKSPACES_MAX or n_bytes > N_WORKSPACE_BYTES_MAX
        ):
            _, (forgotten, *_) = self._workspaces.popitem(last=False)
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


def _posteriors_of(reading: Reading, scaling: _Scaling) -> tuple[RowEstimate, ...]:
    """The posterior of each row that the groups add up to."""
    order = np.argsort(reading.row, kind="stable")
    ends = np.searchsorted(reading.row[order], np.arange(reading.is_covered.size + 1))
    size = np.abs(reading.coefficient)
    result: list[RowEstimate] = []
    for place, is_covered in enumerate(reading.is_covered):
        used = order[ends[place] : ends[place + 1]]
        if not is_covered:
            result.append(NotEstimable("no counted groups add up to it"))
            continue
        value = float(reading.coefficient[used] @ reading.value[used])
        widening = float(size[used] @ reading.lattice_step[used])
        result.append(scaling.posterior(value, size[used] * reading.noise_scale[used], widening))
    return tuple(result)


def _narrowest(
    first: Sequence[RowEstimate], second: Sequence[RowEstimate], confidence: float
) -> tuple[RowEstimate, ...]:
    """Row by row, the narrower of two estimates."""
    return tuple(
        min(rows, key=lambda row: widest((row,), confidence))
        for rows in zip(first, second, strict=True)
    )
