"""An answered part: the posteriors of its linear queries, the values and intervals of its answers.

An answer that is one linear query has its posterior's interval. The law of a formula of several is
simulated (`simulation.py`); its value and interval are cut to the public range. A number of levels
has the ends between which it is (`level_bounds.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cube.encoding import fingerprint
from cube.runtime import cached_property
from inference.block_estimates import half_widths, intervals, standard_deviations, values
from inference.error_terms import Places
from inference.posterior import Posterior
from planner.level_summary import LevelSummary
from planner.workload import Aggregate, Answer, Part, Wanted
from proxy.api.requests import SOURCE_MIXED
from proxy.engine.level_bounds import LevelCounts, LevelLaw
from proxy.engine.postprocessing import OuterSql
from proxy.engine.simulation import SimulatedLaw, Simulation
from proxy.tables.self_answering import OwnCells


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
    part : Part
    aggregates : tuple of AnsweredAggregate
    history : Places
        The measurements that the posteriors' terms refer to.
    outer : OuterSql
        Computes formulas.
    is_boxed : bool
        Whether a formula's interval depends on the half-widths of its parts alone, not on how their
        errors are correlated.
    cells : OwnCells, optional
        What a test of independence is about, where no history says how its counts came about.
    """

    part: Part
    aggregates: tuple[AnsweredAggregate, ...]
    history: Places
    outer: OuterSql
    is_boxed: bool = False
    cells: OwnCells | None = None

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
        """The rows of an aggregate's blocks of which nothing is known: none, unless it says so."""
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
    answer : Answer
    values : (n_rows,) ndarray of float64
        NaN where a formula has no value.
    source : str
    epsilon_spent : Fraction
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
        cut_at = self.part.cut_at(confidence)
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
            return half_widths(self.posteriors, self.part.cut_at(confidence))
        low, high = self.intervals(confidence)
        wide = np.maximum(high - self.values, self.values - low)
        return np.where(np.isnan(wide), np.inf, wide)

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
    return AnsweredItem(answer, part.values(place), used.source, cost, part.part, used.posteriors)


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
