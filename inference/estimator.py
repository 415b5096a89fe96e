"""The estimator of one table: every measurement so far, and the posterior of any query given them.

A query is estimated in up to three ways, and the narrowest at the confidence asked for is the
answer: from the most precise measurement of the very same row; as a sum of counted groups; and
jointly from all rows that bear on it. The joint estimate is skipped where it would be slow and
another is as narrow as was asked. All of that depends on weights, never on noisy values.

The estimator sees noisy values only. It keeps no data and draws nothing.
"""

from collections import OrderedDict
from collections.abc import Sequence
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from cube.block import QueryBlock
from cube.encoding import fingerprint
from cube.grid import Grid
from cube.measurement import Measurement
from cube.query import Scope
from cube.schema import Schema
from inference.answers import Answer, Answers
from inference.bearing import Bearing, rows_that_bear
from inference.cuts import CutIndex
from inference.error_terms import ErrorTerms
from inference.history import N_JOINT_ROWS_MAX, History, counts_groups
from inference.posterior import NotEstimable, Posterior, RowEstimate, widest
from inference.reading import N_READ_CELLS_MAX, PartitionReader
from inference.scaling import Scaling, posteriors_of, split_dust
from inference.workspace import LinearEstimates, Workspace

N_WORKSPACES_MAX = 64  # they are rebuilt from the history at need
N_WORKSPACE_BYTES_MAX = 2**28  # of all of them but the one in use
N_WORKING_CELLS_MAX = 2**14  # products of classes in a workspace: built in a fraction of a second
N_WORKING_ROWS_MAX = 256  # rows from several scopes: combined in milliseconds from nothing
N_ROWS_TAKEN_IN = 16  # at once, while something else is narrow enough; more take too long
N_READINGS_TRIED = 4  # scopes to read a query from, the most promising first
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
        self._answers = Answers()
        self._scalings: WeakKeyDictionary[QueryBlock, Scaling] = WeakKeyDictionary()
        self._cuts = CutIndex()
        self._apart: WeakKeyDictionary[QueryBlock, int] = WeakKeyDictionary()
        """How many measurements there were when a block last stood apart."""
        self._entangled: tuple[WeakSet[QueryBlock], ...] = (WeakSet(),)
        """Blocks that did not: more measurements change nothing of that."""

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
        other._scalings = self._scalings
        other._cuts = self._cuts.fork()
        other._entangled = (WeakSet(), *self._entangled)
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
        for one in measurements:
            if one.supersedes is None and one.block.n_rows <= N_JOINT_ROWS_MAX:
                self._cuts.add(one.block)
        counted = [set(one.block.scope) for one in measurements if counts_groups(one.block)]
        for axes in list(self._readers):
            if any(scope.issubset(axes) for scope in counted):
                del self._readers[axes]

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
        answer = self._answers.get(asked)
        if answer.n_seen < len(self._history) or not (
            answer.is_narrowest or widest(answer.rows, confidence) <= half_width
        ):
            answer = self._estimate(block, confidence, half_width, answer)
        self._answers.keep(asked, answer)
        return answer.rows

    def stands_apart(self, block: QueryBlock, confidence: float) -> bool:
        """Whether it is known that no other rows say anything of a block that was just estimated.

        Once it is measured, or measured more precisely, `with_measured` is its estimate.
        """
        if self._is_outside(block.primitive[0]):
            return True
        answer = self._answers.get((fingerprint(block), confidence))
        return answer.is_apart and answer.n_seen == len(self._history)

    def with_measured(
        self, block: QueryBlock, confidence: float, measurement: Measurement
    ) -> tuple[RowEstimate, ...]:
        """The posterior of each row of a block that stands apart, if its rows were measured."""
        scaling = self._scaling(block)
        rows = _from_own(measurement, len(self._history), scaling)
        return _narrowest(rows, self.estimate(block, confidence), confidence)

    def noisiest(self, block: QueryBlock) -> int | None:
        """The place of the measurement that puts most of the noise into the joint estimate."""
        measured, _ = block.primitive
        if self._is_outside(measured):
            return self._history.most_precise(measured)
        workspace = self._workspace(self._bearing(measured.scope))
        estimates = None if workspace.is_apart(measured) else workspace.estimate(measured)
        if estimates is None or not estimates.is_estimable.all():
            return None
        variance = np.square(estimates.coefficients * workspace.noise_scales).sum(axis=0)
        return int(workspace.noise_places[variance.argmax()]) if variance.size else None

    def _scaling(self, block: QueryBlock) -> Scaling:
        scaling = self._scalings.get(block)
        if scaling is None:
            scaling = self._scalings[block] = Scaling(block, self._schema.n_records_max)
        return scaling

    def _is_outside(self, measured: QueryBlock) -> bool:
        """Whether a block is plainly not what other rows add up to."""
        if any(measured in some for some in self._entangled):
            return False
        if self._apart.get(measured) == len(self._history):
            return True
        is_apart = self._cuts.is_apart(measured, self._bearing(measured.scope).scopes)
        if is_apart:
            self._apart[measured] = len(self._history)
        else:
            self._entangled[0].add(measured)
        return is_apart

    def _estimate(
        self, block: QueryBlock, confidence: float, half_width: float, before: Answer
    ) -> Answer:
        """The posteriors, and whether every way was tried.

        What was known `before`, from fewer measurements, is still an estimate. With the limits on
        what is combined, a longer history may combine other rows; nothing is to be lost by that.
        """
        measured, _ = block.primitive
        n_seen = len(self._history)
        scaling = self._scaling(block)
        if block.query.is_constant:
            return Answer((scaling.constant(),) * block.n_rows, is_narrowest=True, n_seen=n_seen)
        rows = self._alone(measured, scaling)
        rows = _narrowest(rows, before.rows, confidence) if before.rows else rows
        for axes in self._scopes_to_read(measured.scope):
            rows = _narrowest(rows, self._read(measured, axes, scaling), confidence)
        if self._is_outside(measured) or self._has_only_been_measured(measured, before):
            return Answer(rows, is_narrowest=True, n_seen=n_seen)
        bearing = self._bearing(measured.scope)
        is_enough = widest(rows, confidence) <= half_width
        if is_enough and self._n_rows_behind(bearing) > N_ROWS_TAKEN_IN:
            return Answer(rows, is_narrowest=False, n_seen=n_seen)
        workspace = self._workspace(bearing)
        if workspace.is_apart(measured):
            return Answer(rows, is_narrowest=True, n_seen=n_seen, is_apart=True)
        together = self._together(measured, workspace, scaling, confidence)
        rows = _narrowest(rows, together, confidence)
        return Answer(rows, is_narrowest=True, n_seen=n_seen)

    def _has_only_been_measured(self, measured: QueryBlock, before: Answer) -> bool:
        """Whether a block stood apart, and nothing came since but its own measurement."""
        is_next = before.is_apart and before.n_seen == len(self._history) - 1
        return is_next and self._history.most_precise(measured) == before.n_seen

    def _alone(self, block: QueryBlock, scaling: Scaling) -> tuple[RowEstimate, ...]:
        """From the most precise measurement of the very same rows."""
        place = self._history.most_precise(block)
        if place is None:
            return (NotEstimable("these rows were never measured"),) * block.n_rows
        return _from_own(self._history[place], place, scaling)

    def _scopes_to_read(self, scope: Scope) -> list[Scope]:
        """Scopes whose counted groups may add up to a query of `scope`, the least noisy first."""
        wanted = frozenset(scope)
        noise = {
            axes: n_cells * min(one.noise_scale for one in self._history.partitions_on(axes)) ** 2
            for axes in self._history.partition_scopes
            if wanted.issubset(axes) and (n_cells := self._schema.n_cells(axes)) <= N_READ_CELLS_MAX
        }
        return sorted(noise, key=lambda axes: (noise[axes], axes))[:N_READINGS_TRIED]

    def _read(self, block: QueryBlock, axes: Scope, scaling: Scaling) -> tuple[RowEstimate, ...]:
        """As sums of groups that were counted on `axes`."""
        reader = self._readers.get(axes)
        if reader is None:
            measured = self._history.partitions(axes)
            reader = self._readers[axes] = PartitionReader(axes, self._schema.sizes(axes), measured)
        return posteriors_of(reader.read(block), scaling)

    def _together(
        self, block: QueryBlock, workspace: Workspace, scaling: Scaling, confidence: float
    ) -> tuple[RowEstimate, ...]:
        """From every row that bears on the query."""
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
        self, workspace: Workspace, estimates: LinearEstimates, scaling: Scaling
    ) -> tuple[RowEstimate, ...]:
        bias = estimates.residual * self._schema.n_records_max
        result: list[RowEstimate] = []
        for place, coefficients in enumerate(estimates.coefficients):
            if not estimates.is_estimable[place]:
                result.append(NotEstimable("the history does not determine it"))
                continue
            size = np.abs(coefficients)
            value = float(coefficients @ workspace.values)
            used, scales = split_dust(size * workspace.noise_scales)
            terms = ErrorTerms(
                workspace.noise_places[used], workspace.noise_rows[used], coefficients[used]
            )
            widening = float(size @ workspace.lattice_steps) + float(bias[place])
            result.append(scaling.posterior(value, scaling.law(scales), widening, terms))
        return tuple(result)

    def _bias_is_too_large(
        self,
        estimates: LinearEstimates,
        posteriors: Sequence[RowEstimate],
        scaling: Scaling,
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
        workspace, places = self._workspace_behind(bearing)
        self._workspaces.pop(bearing.axes, None)
        if workspace is None:
            workspace = Workspace(bearing.axes, self._schema.sizes(bearing.axes))
        elif self._is_fork:
            workspace = workspace.copy()
        for some in places:
            workspace.add(self._history, some)
        self._workspaces[bearing.axes] = (workspace, bearing, len(self._history))
        self._forget_workspaces()
        return workspace

    def _workspace_behind(self, bearing: Bearing) -> tuple[Workspace | None, list[list[int]]]:
        """A workspace as it was last used, if it can be gone on with, and what it has not seen."""
        workspace, known, n_seen = self._workspaces.get(bearing.axes, (None, bearing, 0))
        if workspace is None or not set(known.scopes).issubset(bearing.scopes):
            return None, [list(self._history.in_use(bearing.scopes))]
        further = sorted(set(bearing.scopes).difference(known.scopes))
        in_use = self._history.in_use
        return workspace, [list(in_use(known.scopes, since=n_seen)), list(in_use(further))]

    def _n_rows_behind(self, bearing: Bearing) -> int:
        """How many rows the workspace of some rows has yet to take in."""
        _, places = self._workspace_behind(bearing)
        return sum(self._history[place].block.n_rows for some in places for place in some)

    def _forget_workspaces(self) -> None:
        """Let go of what was used longest ago, until the limits are kept."""
        n_bytes = sum(workspace.n_bytes for workspace, *_ in self._workspaces.values())
        while len(self._workspaces) > 1 and (
            len(self._workspaces) > N_WORKSPACES_MAX or n_bytes > N_WORKSPACE_BYTES_MAX
        ):
            _, (forgotten, *_) = self._workspaces.popitem(last=False)
            n_bytes -= forgotten.n_bytes


def _from_own(measurement: Measurement, place: int, scaling: Scaling) -> tuple[Posterior, ...]:
    """From a measurement of the very same rows, at its place in the history."""
    law = scaling.law(np.array([measurement.noise_scale]))
    places, one = np.array([place]), np.ones(1)
    every = np.arange(measurement.block.n_rows)[:, np.newaxis]
    step = measurement.lattice_step
    return tuple(
        scaling.posterior(float(value), law, step, ErrorTerms(places, row, one))
        for value, row in zip(measurement.values, every, strict=True)
    )


def _narrowest(
    first: Sequence[RowEstimate], second: Sequence[RowEstimate], confidence: float
) -> tuple[RowEstimate, ...]:
    """Row by row, the narrower of two estimates."""
    return tuple(
        min(rows, key=lambda row: widest((row,), confidence))
        for rows in zip(first, second, strict=True)
    )
