"""The parts of a statement as they were answered, and the ends of numbers of levels.

Between which ends a number of levels is, in each row of a part: those found, and those possible.

A level is found if its noisy count is above what noise alone reaches, and possible unless its noisy
count is so far below one record that noise alone does not explain it. An empty level errs by being
found, one with records by not being possible: either happens in one tail of its noise, so that all
levels of a row together err with the error probability that is asked for. So the number of levels
is at least that of those found, and at most that of those possible.

Where fewer than half of the possible levels were found, the number found does not estimate the true
number, and is not shown.

An answered part: the posteriors of its linear queries, the values and intervals of its answers.

An answer that is one linear query has its posterior's interval. The law of a formula of several is
simulated (`simulation.py`); its value and interval are cut to the public range. A number of levels
has the ends between which it is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cube.encoding import fingerprint
from cube.pace import checkpoint
from cube.runtime import cached_property
from inference import (
    Places,
    Posterior,
    half_widths,
    intervals,
    posteriors_by,
    standard_deviations,
    values,
)
from inference.marginals import Solver
from planner.level_summary import LevelStatistic, LevelSummary
from planner.workload import Aggregate, Answer, Part, Wanted
from proxy.api import SOURCE_MIXED
from proxy.engine.answers.simulation import SimulatedLaw, Simulation
from proxy.outer_sql.postprocessing import OuterSql
from proxy.tables import OwnCells

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LevelCounts:
    """Noisy counts of the levels in each row.

    Parameters
    ----------
    counts : (n_rows, n_levels) ndarray of float64
        0 where no record can be.
    half_widths : callable
        Returns the half-width of each count's interval at a confidence, (n_rows, n_levels); 0 where
        no record can be. The noise is beyond it on either side equally often.
    is_counted : (n_rows, n_levels) ndarray of bool
        Where records can be.
    """

    counts: Floats
    half_widths: Callable[[float], Floats]
    is_counted: Flags

    @classmethod
    def of(cls, summary: LevelSummary, posteriors: Sequence[Posterior], n_rows: int) -> Self:
        """Those of the aggregate that counts the levels of a summary."""
        shape = n_rows, len(summary.values)
        at = np.unravel_index(np.array(summary.cells, dtype=np.int64), (n_rows, max(shape[1], 1)))

        def placed(found: Floats) -> Floats:
            array = np.zeros(shape)
            array[at] = found
            return array

        @cache
        def widths(confidence: float) -> Floats:
            return placed(half_widths(posteriors, confidence))

        return cls(placed(values(posteriors)), widths, placed(np.ones(len(posteriors))) > 0)

    def found(self, confidence: float) -> Flags:
        """The levels that occur, (n_rows, n_levels): none of a row is empty, so probably."""
        return np.asarray(self.counts > self._thresholds(confidence))

    def possible(self, confidence: float) -> Flags:
        """The levels that may occur, (n_rows, n_levels): all that do are, so probably."""
        return np.asarray(self.counts + self._thresholds(confidence) >= 1)

    def _thresholds(self, confidence: float) -> Floats:
        """What noise alone reaches, (n_rows, n_levels); counts are whole, so one half at least.

        A half-width leaves as much on either side. Each level errs on one side alone, with its
        share of the error probability.
        """
        at_each = 1 - 2 * (1 - confidence) / max(self.counts.shape[1], 1)
        return np.maximum(self.half_widths(at_each) if at_each > 0 else 0.0, 0.5)


@dataclass(frozen=True, eq=False)
class LevelLaw:
    """A count of levels, or a sum of them, in each row of a part.

    Parameters
    ----------
    adds : (n_levels,) ndarray of float64
        What each level adds: one to a count.
    confidence : float
        With which the levels that the shown number is of are not empty.
    is_lost : (n_rows,) ndarray of bool
        The rows about which too little is known to show a value.
    """

    levels: LevelCounts
    adds: Floats
    confidence: float
    is_lost: Flags

    @classmethod
    def of(cls, summary: LevelSummary, levels: LevelCounts, confidence: float) -> Self:
        """That of a count or a sum of levels."""
        is_count = summary.statistic is LevelStatistic.COUNT
        adds = np.ones(len(summary.values)) if is_count else np.array(summary.values, np.float64)
        is_lost = np.zeros(len(levels.counts), dtype=np.bool_)
        return cls(levels, adds, confidence, is_lost)

    @cached_property
    def values(self) -> Floats:
        """What the levels that were found add up to, (n_rows,); NaN where that is not shown."""
        found, possible = self._ends(self.confidence)
        is_shown = 2 * found.sum(axis=1) >= possible.sum(axis=1)
        return np.where(is_shown & ~self.is_lost, found @ self.adds, np.nan)

    @property
    def is_undivided(self) -> Flags:
        """Nowhere, (n_rows,): it divides by nothing."""
        return np.zeros(self.is_lost.shape, dtype=np.bool_)

    def interval(self, confidence: float) -> tuple[Floats, Floats]:
        """The ends between which each row's number is, (n_rows,) each; what is shown is inside."""
        found, possible = self._ends(confidence)
        sure, others = found @ self.adds, possible & ~found
        low = np.fmin(sure + others @ np.minimum(self.adds, 0.0), self.values)
        return low, np.fmax(sure + others @ np.maximum(self.adds, 0.0), self.values)

    def spreads(self, confidence: float) -> Floats:
        """Half of how far the ends lie apart, (n_rows,)."""
        low, high = self.interval(confidence)
        return (high - low) / 2

    def probabilities(self, low: float, high: float) -> Floats:  # noqa: ARG002 - as other laws
        """NaN, (n_rows,): between its ends, nothing says how likely a number is."""
        return np.full(self.is_lost.shape, np.nan)

    def standard_errors(self) -> Floats:
        """NaN, (n_rows,): between its ends, nothing says how likely a number is."""
        return np.full(self.is_lost.shape, np.nan)

    def hidden(self, lost: Flags) -> Self:
        """The same without values in the rows where some levels are not known at all."""
        return replace(self, is_lost=self.is_lost | lost)

    def _ends(self, confidence: float) -> tuple[Flags, Flags]:
        """The levels that were found, and all that are possible, (n_rows, n_levels) each."""
        lost = self.is_lost[:, None]
        found = self.levels.found(confidence) & ~lost
        return found, self.levels.possible(confidence) | (self.levels.is_counted & lost)


N_AT_ONCE: Final = 2**12  # probabilities between looks at the clock


@dataclass(frozen=True, eq=False)
class AnsweredAggregate:
    """One linear query of a part: the posterior of every row, its source, and its cost.

    `asked` holds each of its blocks with the target that finally applied.
    """

    aggregate: Aggregate
    posteriors: Sequence[Posterior]
    source: str
    epsilon_spent: Fraction
    asked: tuple[Wanted, ...]


@dataclass(frozen=True, eq=False)
class AnsweredPart:
    """A part with the estimates of its linear queries.

    Parameters
    ----------
    history : Places
        The measurements that the posteriors' terms refer to.
    outer : OuterSql
        Computes formulas.
    is_boxed : bool
        Whether a formula's interval depends on the half-widths of its parts alone, not on how their
        errors are correlated.
    cells : OwnCells, optional
        What a test of independence is about, where no history says how its counts came about.
    has_laws : bool
        Whether the posteriors have laws of errors. Else they only bound errors, as those of tables
        that answer by themselves, and no claim has a probability.
    solver : Solver, optional
        What made counts agree; None where none was needed.
    """

    part: Part
    aggregates: tuple[AnsweredAggregate, ...]
    history: Places
    outer: OuterSql
    is_boxed: bool = False
    cells: OwnCells | None = None
    has_laws: bool = True
    solver: Solver | None = None

    @cached_property
    def answers(self) -> "tuple[AnsweredItem, ...]":
        """Every answer of the part."""
        return tuple(
            _answered(answer, cost, self)
            for answer, cost in zip(self.part.answers, self._costs(), strict=True)
        )

    @property
    def epsilon_spent(self) -> Fraction:
        """How much the part added to its table's cost."""
        return sum((one.epsilon_spent for one in self.aggregates), Fraction(0))

    def _costs(self) -> list[Fraction]:
        """What each answer added; the cost of a shared aggregate counts for its first answer."""
        costs, paid = [], set[int]()
        for answer in self.part.answers:
            new = set(answer.uses) - paid
            costs.append(sum((self.aggregates[one].epsilon_spent for one in new), Fraction(0)))
            paid |= new
        return costs

    def shown_posteriors(self, aggregate: int) -> Sequence[Posterior]:
        """The posteriors of an aggregate, computed as the statement says."""
        answered = self.aggregates[aggregate]
        names = "".join(map(fingerprint, answered.aggregate.blocks))
        rng = np.random.default_rng([len(self.history), *names.encode()])
        return posteriors_by(answered.posteriors, self.part.posterior, rng)

    def levels(self, summary: LevelSummary) -> LevelCounts:
        """The noisy counts of the levels of a summary: one object for all of an aggregate."""
        place = summary.aggregate
        if place not in self._levels:
            posteriors = self.aggregates[place].posteriors
            self._levels[place] = LevelCounts.of(summary, posteriors, self.part.n_rows)
        return self._levels[place]

    @cached_property
    def _levels(self) -> dict[int, LevelCounts]:
        return {}

    def unknown_rows(self, aggregate: int) -> NDArray[np.bool_]:
        """The rows of an aggregate's blocks without any known answer; none by default."""
        return np.zeros(len(self.aggregates[aggregate].posteriors), dtype=np.bool_)

    def values(self, aggregate: int) -> NDArray[np.float64]:
        """What is shown of an aggregate in every row of the part, (n_rows,)."""
        answered = self.aggregates[aggregate]
        found = values(answered.posteriors)
        if answered.aggregate.is_nonnegative:
            found = np.maximum(found, 0.0)
        return np.repeat(found, self.part.n_rows) if answered.aggregate.is_total else found


@dataclass(frozen=True, eq=False)
class AnsweredItem:
    """One answer of a part: a value for each row, and the law of the true value given it.

    Parameters
    ----------
    values : (n_rows,) ndarray of float64
        NaN where a formula has no value.
    part : Part
        Determines the confidence of the intervals.
    posteriors : sequence of Posterior
        For a linear answer: one per row.
    law : SimulatedLaw or LevelLaw, optional
        For a formula.
    """

    answer: Answer
    values: NDArray[np.float64]
    source: str
    epsilon_spent: Fraction
    part: Part
    posteriors: Sequence[Posterior] = ()
    law: SimulatedLaw | LevelLaw | None = None

    @property
    def is_undivided(self) -> NDArray[np.bool_]:
        """The rows in which something that a formula divides by cannot be told from 0."""
        if self.law is None:
            return np.zeros(self.values.shape, dtype=np.bool_)
        return self.law.is_undivided

    @property
    def has_target(self) -> NDArray[np.bool_]:
        """The rows that are to be known to a target: those in which a formula has a value.

        None of a number of levels: its targets are those of the counts of levels.
        """
        if isinstance(self.law, LevelLaw):
            return np.zeros(self.values.shape, dtype=np.bool_)
        return ~(self.is_undivided | np.isnan(self.values))

    def intervals(self, confidence: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The ends of each row's interval, (n_rows,) each; what is shown is between them."""
        cut_at = self._cut_at(confidence)
        if self.law is not None:
            return self.law.interval(cut_at)
        low, high = intervals(self.posteriors, cut_at, self.values)
        if not self.answer.is_rounded:
            return low, high
        shown = np.rint(self.values)
        return np.minimum(low, shown), np.maximum(high, shown)

    def half_widths(self, confidence: float) -> NDArray[np.float64]:
        """How far the true value may be from the answer, (n_rows,)."""
        if self.law is None:
            return half_widths(self.posteriors, self._cut_at(confidence))
        low, high = self.intervals(confidence)
        wide = np.maximum(high - self.values, self.values - low)
        return np.where(np.isnan(wide), np.inf, wide)

    def _cut_at(self, confidence: float) -> float:
        """The confidence of one look, so that the interval finally has the requested one."""
        cut_at = self.part.cut_at(confidence)
        if self.law is not None:
            return cut_at
        used = self.part.aggregates[self.answer.uses[0]]
        if used.decision is None:
            return cut_at
        return 1 - (1 - cut_at) / used.decision.n_looks(used.target.half_width)

    def probabilities(self, low: float, high: float) -> NDArray[np.float64]:
        """How probably the true value is in a range, given the answer, (n_rows,).

        By the law of the noise and nothing else: neither the public range nor a prior is used. NaN
        where the law is not known.
        """
        if self.law is not None:
            return self.law.probabilities(low, high)
        found = np.empty(len(self.posteriors))
        for place, one in enumerate(self.posteriors):
            if place % N_AT_ONCE == 0:
                checkpoint()
            found[place] = one.probability(low, high)
        return found

    def standard_errors(self) -> NDArray[np.float64]:
        """The standard deviation of the true value about the answer, (n_rows,)."""
        if self.law is not None:
            return self.law.standard_errors()
        return standard_deviations(self.posteriors)


def _answered(answer: Answer, cost: Fraction, part: AnsweredPart) -> AnsweredItem:
    if answer.formula is None:
        return _linear(answer, cost, part)
    if isinstance(answer.formula, LevelSummary):
        return _of_levels(answer, answer.formula, cost, part)
    return _simulated(answer, cost, part)


def _of_levels(
    answer: Answer, summary: LevelSummary, cost: Fraction, part: AnsweredPart
) -> AnsweredItem:
    used, own = part.aggregates[summary.aggregate], part.part
    law = LevelLaw.of(summary, part.levels(summary), own.cut_at(own.confidence))
    return AnsweredItem(answer, law.values, used.source, cost, own, law=law)


def _linear(answer: Answer, cost: Fraction, part: AnsweredPart) -> AnsweredItem:
    (place,) = answer.uses
    used = part.aggregates[place]
    posteriors = part.shown_posteriors(place)
    return AnsweredItem(answer, part.values(place), used.source, cost, part.part, posteriors)


def _simulated(answer: Answer, cost: Fraction, part: AnsweredPart) -> AnsweredItem:
    used = [part.aggregates[place] for place in answer.uses]
    simulation = Simulation(
        answer=answer,
        part=part.part,
        rows=tuple(tuple(one.posteriors) for one in used),
        names="".join(fingerprint(block) for one in used for block in one.aggregate.blocks),
        history=part.history,
        outer=part.outer,
        is_boxed=part.is_boxed,
    )
    law = simulation.law()
    sources = {one.source for one in used}
    source = sources.pop() if len(sources) == 1 else SOURCE_MIXED
    return AnsweredItem(answer, law.values, source, cost, part.part, law=law)
