"""The estimator of one table: every measurement so far, and the posterior of any query given them.

A query is estimated in up to three ways, and the narrowest estimate at the requested confidence is
the answer: from the most precise measurement of the same row; as sums of counted groups, of one
table or of all that have its column (counted_groups.py); and jointly from all relevant rows. The
joint estimate is skipped where it would be slow and another is already as narrow as requested. All
of this depends on weights, never on noisy values.

The estimator sees noisy values only. It keeps no data and draws no noise.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np

from cube.encoding import fingerprint
from cube.holders import Holders
from cube.measurement import Measurement
from cube.query import QueryBlock, Scope
from cube.schema import Schema
from inference.block_estimates import (
    RowEstimates,
    half_widths,
    narrowest,
    standard_deviations,
    unknown,
    widest,
)
from inference.blue import (
    CombinedRows,
    CountedGroups,
    LinearEstimates,
    Reading,
    StretchesReader,
    Workspace,
)
from inference.error_terms import ErrorTerms
from inference.history import History
from inference.memory import (
    DEFAULT_MEMORY,
    N_KEPT,
    EarlierHistories,
    EstimatorMemory,
    RecalledAnswer,
    RecalledAnswers,
)
from inference.posterior import RowEstimate
from inference.scaling import Scaling, posteriors_of, split_dust

# Times the deviation of the known answer: with more, an estimate is wider at usual confidences,
# whatever the laws are, and sums of a thousand noises are not tried.
DEVIATION_MAX = 1.5
BIAS_SHARE_MAX = 1e-6  # of the half-width; beyond this the factorisation is refreshed


class Estimator:
    """Posteriors of linear queries on one table.

    Parameters
    ----------
    schema : Schema
    memory : EstimatorMemory, optional
        The memory in which earlier work is kept.
    """

    def __init__(self, schema: Schema, memory: EstimatorMemory = DEFAULT_MEMORY) -> None:
        self._schema = schema
        self._memory = memory
        self._history = History()
        self._holders = None if schema.holders is None else Holders.of(schema)
        self._combined = CombinedRows(schema, self._history, memory.workspaces)
        self._groups = CountedGroups(schema, self._history)
        self.answers = RecalledAnswers(memory.n_terms)
        """The answers given before; read only."""
        self._scalings: WeakKeyDictionary[QueryBlock, Scaling] = WeakKeyDictionary()
        self._earlier = EarlierHistories(partial(_begun, schema, memory))

    @property
    def n_measurements(self) -> int:
        """The number of measurements so far."""
        return len(self._history)

    @property
    def history(self) -> History:
        """The measurements so far; read only."""
        return self._history

    def snapshot(self) -> "Estimator":
        """The estimator as it is now, for another thread; this one may grow meanwhile."""
        other = self._forked(self._earlier.n_opened_with, lasts=True)
        other.answers = self.answers.copy()
        return other

    def remember(self, asked: Sequence[tuple[QueryBlock, float]], other: "Estimator") -> None:
        """Take over the answers of a snapshot of this estimator, so that they can be `recalled`."""
        for block, confidence in asked:
            name = (fingerprint(block), confidence)
            answer = other.answers.get(name)
            if answer.n_seen > self.answers.get(name).n_seen:
                self.answers.keep(name, answer)

    def fork(self) -> "Estimator":
        """A short-lived copy, for forecasts of the half-widths after some purchases."""
        return self._forked(n_opened_with=0, lasts=False)

    def _forked(self, n_opened_with: int | None, *, lasts: bool) -> "Estimator":
        other = Estimator(self._schema, self._memory)
        other._history = self._history.copy()
        other._combined = self._combined.forked(other._history, lasts=lasts)
        other._groups = self._groups.forked(other._history)
        other._scalings = self._scalings
        other._holders = self._holders  # with what it has split before
        other._earlier = EarlierHistories(
            partial(_begun, self._schema, self._memory), n_opened_with
        )
        return other

    def further(self, measurements: Sequence[Measurement]) -> "Estimator":
        """An estimator of more measurements, which looks back no further."""
        other = self._forked(n_opened_with=0, lasts=True)
        other.add(measurements)
        return other

    def add(self, measurements: Sequence[Measurement]) -> None:
        """Append measurements to the history, in the order of purchase."""
        self._earlier.begin_with(len(measurements))
        if not measurements:
            return
        n_rows = dict(self._history.n_rows)
        self._history.add(measurements)
        self._combined.add([one.block for one in measurements], n_rows)

    def estimate(
        self, block: QueryBlock, confidence: float, half_width: float = 0.0
    ) -> RowEstimates:
        """The posterior of each row of a block.

        Parameters
        ----------
        block : QueryBlock
            May have rational coefficients and a constant.
        confidence : float
            If there are several estimates, the narrowest at this confidence is used.
        half_width : float
            At this half-width or below it, slow ways to a narrower estimate are not tried.

        Returns
        -------
        tuple of (Posterior or NotEstimable), one for each row
        """
        asked = (fingerprint(block), confidence)
        answer = self.answers.get(asked)
        if answer.n_seen < len(self._history) or not (
            answer.is_narrowest or widest(answer.rows, confidence) <= half_width
        ):
            answer = self._estimate(block, confidence, half_width, answer)
        self.answers.keep(asked, answer)
        return answer.rows

    def estimates(self, asked: Sequence[tuple[QueryBlock, float, float]]) -> Iterator[RowEstimates]:
        """`estimate` for several blocks, one after another.

        A block that is asked for twice is one thing with one estimate, as narrow as either asks.

        Parameters
        ----------
        asked : sequence of (block, confidence, half_width)
        """
        names = [(fingerprint(block), confidence) for block, confidence, _ in asked]
        half_widths: dict[Hashable, float] = {}
        for name, (_, _, half_width) in zip(names, asked, strict=True):
            half_widths[name] = min(half_width, half_widths.get(name, half_width))
        for name, (block, confidence, _) in zip(names, asked, strict=True):
            yield self.estimate(block, confidence, half_widths[name])

    def recalled(
        self, asked: Sequence[tuple[QueryBlock, float, float]], n_measurements: int
    ) -> list[RowEstimates] | None:
        """The remembered results of `estimate` for several blocks. Thread-safe.

        None if some block was not estimated, or not to this half-width, from `n_measurements`.

        Parameters
        ----------
        asked : sequence of (block, confidence, half_width)
        n_measurements : int
            The present number of measurements, which this estimator may not all have yet.
        """
        found = []
        for block, confidence, half_width in asked:
            answer = self.answers.get((fingerprint(block), confidence))
            if answer.n_seen != n_measurements or widest(answer.rows, confidence) > half_width:
                return None
            found.append(answer.rows)
        return found

    def stands_apart(self, block: QueryBlock, confidence: float) -> bool:
        """Whether it is certain that no other rows say anything about a block just estimated.

        Then, once it is measured, or measured more precisely, `with_measured` is its estimate.
        """
        if self._combined.has_no_relations(block.primitive[0]):
            return True
        answer = self.answers.get((fingerprint(block), confidence))
        return answer.is_apart and answer.n_seen == len(self._history)

    def with_measured(
        self, block: QueryBlock, confidence: float, measurement: Measurement
    ) -> RowEstimates:
        """The posterior of each row of a block that stands apart, given its own measurement."""
        scaling = self._scaling(block)
        rows = scaling.of_own(measurement, len(self._history))
        return narrowest(rows, self.estimate(block, confidence), confidence)

    def noisiest(self, block: QueryBlock) -> int | None:
        """The place of the measurement that contributes most of the noise of the joint estimate."""
        measured, _ = block.primitive
        if self._grows_long(measured) or self._combined.has_no_relations(measured):
            return self._history.most_precise(measured)
        workspace = self._combined.workspace(measured)
        estimates = None if workspace.is_apart(measured) else workspace.estimate(measured)
        if estimates is None or not estimates.is_estimable.all():
            return None
        variance = np.square(estimates.coefficients * workspace.noise_scales).sum(axis=0)
        return int(workspace.noise_places[variance.argmax()]) if variance.size else None

    def rests(self, row: QueryBlock) -> dict[Scope, QueryBlock]:
        """For each hierarchy, by its axes, what it leaves of a row in lowest terms."""
        return self._groups.rests(row)

    @property
    def stretches(self) -> StretchesReader | None:
        """The reader along the axis by which the table grows; None if the table does not grow."""
        return self._groups.stretches

    def _scaling(self, block: QueryBlock) -> Scaling:
        scaling = self._scalings.get(block)
        if scaling is None:
            scaling = self._scalings[block] = Scaling(block, self._schema.n_records_max)
        return scaling

    def _estimate(
        self, block: QueryBlock, confidence: float, half_width: float, before: RecalledAnswer
    ) -> RecalledAnswer:
        """The posteriors, and whether every way to estimate was tried.

        The answer `before`, from fewer measurements, is still a valid estimate. Because of the
        limits on what is combined, a longer history may combine other rows. Keeping the narrower
        answer loses nothing by that, nor by a restart, after which there is no answer before.
        """
        measured, _ = block.primitive
        n_seen = len(self._history)
        scaling = self._scaling(block)
        if block.query.is_constant:
            return RecalledAnswer(
                (scaling.constant(),) * block.n_rows, is_narrowest=True, n_seen=n_seen
            )
        rows = self._alone(measured, scaling)
        for reading in self._groups.readings(measured):
            rows = narrowest(rows, posteriors_of(reading, scaling), confidence)
        now = before.narrowed(rows, confidence, is_narrowest=False, n_seen=n_seen)
        if self._grows_long(measured):
            if widest(now.rows, confidence) > half_width:
                rows = self._with_margins(measured, rows, scaling, confidence)
                now = before.narrowed(rows, confidence, is_narrowest=True, n_seen=n_seen)
            return now
        if self._is_alone(measured) or self._has_only_been_measured(measured, before):
            rows = self._with_margins(measured, rows, scaling, confidence)
            return before.narrowed(rows, confidence, is_narrowest=True, n_seen=n_seen)
        if widest(now.rows, confidence) <= half_width and self._combined.takes_long(measured):
            return now
        workspace = self._combined.workspace(measured)
        if workspace.is_apart(measured):
            rows = self._with_margins(measured, rows, scaling, confidence)
            found = before.narrowed(rows, confidence, is_narrowest=True, n_seen=n_seen)
            return replace(found, is_apart=True)
        together = self._together(measured, workspace, scaling, confidence)
        rows = narrowest(rows, together, confidence)
        rows = self._with_margins(measured, rows, scaling, confidence)
        if not before.rows and widest(rows, confidence) > half_width:
            rows = self._as_promised(block, confidence, half_width, rows)
        return before.narrowed(rows, confidence, is_narrowest=True, n_seen=n_seen)

    def _is_alone(self, measured: QueryBlock) -> bool:
        """Whether it is certain that only a block's own measurement estimates it, or each holder's.

        Every measured row is of one holder. So the estimate of a sum over holders is a sum of what
        estimates its addends.
        """
        addends = () if self._holders is None else self._holders.addends(measured)
        return all(map(self._combined.has_no_relations, addends or (measured,)))

    def _grows_long(self, measured: QueryBlock) -> bool:
        """Whether a table that grows has too many rows beside a block to combine them.

        Every day leaves some for every query, and all of them are related: what they say along the
        axis of time is read, and no more.
        """
        return self._schema.grows is not None and self._combined.is_crowded(measured)

    def _with_margins(
        self,
        measured: QueryBlock,
        rows: RowEstimates,
        scaling: Scaling,
        confidence: float,
    ) -> RowEstimates:
        """The rows, or narrower ones from all tables that were counted with a block's column.

        What is tried depends on this history alone, not on answers before, which a forecast has
        not: what is forecast must be what is found.
        """
        reading = self._groups.of_margins(measured)
        if reading is None or not _may_be_narrower(reading, rows, scaling):
            return rows
        return narrowest(rows, posteriors_of(reading, scaling), confidence)

    def _as_promised(
        self,
        block: QueryBlock,
        confidence: float,
        half_width: float,
        rows: RowEstimates,
    ) -> RowEstimates:
        """The rows, or narrower ones: from what the history was when these may have been bought."""
        measured, _ = block.primitive
        last = map(self._history.last_on, self._groups.scopes_of_cells(measured.scope))
        bought = (self._history.most_precise(measured), *last)
        asked = (block, confidence, half_width)
        for found in self._earlier.estimates(self._history, bought, *asked):
            rows = narrowest(rows, found, confidence)
            if widest(rows, confidence) <= half_width:
                break
        return rows

    def _has_only_been_measured(self, measured: QueryBlock, before: RecalledAnswer) -> bool:
        """Whether a block stood apart `before`, and only its own measurement was added since."""
        is_next = before.is_apart and before.n_seen == len(self._history) - 1
        return is_next and self._history.most_precise(measured) == before.n_seen

    def _alone(self, block: QueryBlock, scaling: Scaling) -> RowEstimates:
        """Estimates from the most precise measurement of the same rows, perhaps by each holder."""
        place = self._history.most_precise(block)
        if place is not None:
            return scaling.of_own(self._history[place], place)
        parts = () if self._holders is None else self._holders.addends(block)
        places = [self._history.most_precise(one) for one in parts]
        measured = [one for one in places if one is not None]
        if not parts or len(measured) < len(places):
            return unknown("these rows were never measured", block.n_rows)
        return posteriors_of(self._sum_of(measured, block.n_rows), scaling)

    def _sum_of(self, places: Sequence[int], n_rows: int) -> Reading:
        """The rows of several measurements, added up: of a federated table, one of each holder."""
        measured = [self._history[place] for place in places]
        rows = np.tile(np.arange(n_rows), len(places))
        return Reading(
            row=rows,
            coefficient=np.ones(rows.size),
            value=np.concatenate([one.values for one in measured]),
            noise_scale=np.repeat([one.noise_scale for one in measured], n_rows),
            is_gaussian=np.repeat([one.is_gaussian for one in measured], n_rows),
            lattice_widening=np.repeat([one.lattice_widening for one in measured], n_rows),
            noise_place=np.repeat(places, n_rows),
            noise_row=rows,
            is_covered=np.ones(n_rows, dtype=np.bool_),
        )

    def _together(
        self, block: QueryBlock, workspace: Workspace, scaling: Scaling, confidence: float
    ) -> RowEstimates:
        """Joint estimates from all relevant rows."""
        estimates = workspace.estimate(block)
        if estimates is None:
            return unknown("the query has too many rows to combine with the history", block.n_rows)
        posteriors = self._posteriors(workspace, estimates, scaling)
        if self._bias_is_too_large(estimates, posteriors, scaling, confidence):
            workspace.refresh()
            estimates = workspace.estimate(block) or estimates
            posteriors = self._posteriors(workspace, estimates, scaling)
        return posteriors

    def _posteriors(
        self, workspace: Workspace, estimates: LinearEstimates, scaling: Scaling
    ) -> RowEstimates:
        nothing = unknown("the history does not determine this answer", len(estimates.is_estimable))
        if not estimates.is_estimable.any():
            return nothing
        bias = estimates.residual * self._schema.n_records_max
        result: list[RowEstimate] = []
        for place, coefficients in enumerate(estimates.coefficients):
            if not estimates.is_estimable[place]:
                result.append(nothing[place])
                continue
            size = np.abs(coefficients)
            value = float(coefficients @ workspace.values)
            used, scales, gaussian = split_dust(
                size * workspace.noise_scales, workspace.is_gaussian
            )
            terms = ErrorTerms(
                workspace.noise_places[used], workspace.noise_rows[used], coefficients[used]
            )
            widening = float(size @ workspace.lattice_widenings) + float(bias[place])
            result.append(scaling.posterior(value, scaling.law(scales, gaussian), widening, terms))
        return tuple(result)

    def _bias_is_too_large(
        self,
        estimates: LinearEstimates,
        posteriors: RowEstimates,
        scaling: Scaling,
        confidence: float,
    ) -> bool:
        bias = estimates.residual * self._schema.n_records_max * abs(scaling.multiplier)
        most = BIAS_SHARE_MAX * half_widths(posteriors, confidence)
        return bool((estimates.is_estimable & (bias > most)).any())


def _begun(schema: Schema, memory: EstimatorMemory) -> Estimator:
    """An estimator of an earlier history of a table, before any measurement."""
    return Estimator(schema, memory.of_earlier(N_KEPT))


def _may_be_narrower(reading: Reading, rows: RowEstimates, scaling: Scaling) -> bool:
    """Whether a reading may be narrower than what is known of some row that it covers."""
    found = np.sqrt(2 * reading.variances) * abs(scaling.multiplier)
    is_as_good = standard_deviations(rows) * DEVIATION_MAX <= found
    return bool((reading.is_covered & ~is_as_good).any())
