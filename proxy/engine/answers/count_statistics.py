"""What is computed from a part's noisy counts: numbers of levels, tests, counts that agree.

Numbers that are read off noisy counts of levels, for each row of an answered part.

A level whose noisy count is near the noise is not found. What is left over, the sum of the noisy
counts of such levels, is known better than each of them: where it is clearly above its own noise,
levels are missing for certain, and a note says so. Where most records are in missing levels, or
fewer than half of the levels that may occur were found, the number is NULL: 2 of 86 levels is no
estimate of 86. All of this is computed from noisy counts.

This is post-processing of answers that are paid for or free, and of the law of their noise: from
the history, or as a table that answers by itself says. Nothing here charges, and nothing here draws
privacy noise.

Makes the counts of a part's grouping sets agree after they are answered.

This is post-processing: the sets are already answered to their targets, and nothing more is bought.
Estimates may rest on the same measurements; the reconciliation weighs them as if they were
independent, which is still unbiased, and the law of each error is computed from the measurements'
own noise, so that intervals account for shared noise: they are exact, or slightly wide where one
estimate rests on a measurement and another on its refinement.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from cube.axis import LevelValue
from cube.encoding import fingerprint
from inference import Places, Posterior, error_parts, standard_deviations
from inference.independence import (
    Decision,
    IndependenceTest,
    Reason,
    Statistic,
    TableLaw,
    independence_test,
    table_from_history,
)
from inference.marginals import (
    NoisyTable,
    Solver,
    UnknownLaw,
    cell_coefficients,
    nonnegative,
    projected,
    reconciled_globally,
)
from inference.noise_law import law_of_noises
from planner.level_summary import BOUNDED, LevelStatistic, LevelSummary, threshold
from planner.workload import Consistency, ConsistentSets, IndependenceQuestion
from proxy.engine.answers.results import AnsweredAggregate, AnsweredPart

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

_EXTREMES = (LevelStatistic.LEAST, LevelStatistic.LARGEST)


@dataclass(frozen=True, eq=False)
class _Levels:
    """The levels of every row of a part: what was counted, and what was found.

    Parameters
    ----------
    counts : (n_rows, n_levels) ndarray of float64
        Noisy counts; 0 where no record can be.
    occurs, possible : (n_rows, n_levels) ndarray of bool
        The levels that were found, and those that may occur.
    is_lost : (n_rows,) ndarray of bool
        Whether nothing is known of some of the counts.
    missed : (n_rows,) ndarray of float64
        About how many records are in levels that the number misses.
    is_short : (n_rows,) ndarray of bool
        Whether these are clearly more than noise.
    """

    counts: Floats
    occurs: Flags
    possible: Flags
    is_lost: Flags
    missed: Floats
    is_short: Flags

    @property
    def found(self) -> Floats:
        """About how many records are in levels that were found, (n_rows,)."""
        return np.asarray(np.where(self.occurs, self.counts, 0.0).sum(axis=1))

    @property
    def is_mostly_missed(self) -> Flags:
        """The rows in which most records are in levels that are missed, (n_rows,)."""
        return self.is_short & (self.missed > self.found)

    @property
    def may_miss_half(self) -> Flags:
        """The rows in which fewer than half of the levels that may occur were found, (n_rows,)."""
        return np.asarray(2 * self.occurs.sum(axis=1) < self.possible.sum(axis=1))


def summarised(answered: AnsweredPart, summary: LevelSummary) -> list[LevelValue]:
    """The number of every row.

    It is NULL where no level is taken to occur, and it is no count or sum; where most records are
    in levels that it misses; where it is a count or a sum that may miss more than half of the
    levels; and where nothing is known of some level.
    """
    levels = _levels(answered, summary)
    counts = np.where(levels.occurs, levels.counts, -math.inf)
    is_null = _is_null(summary, levels)
    return [
        None if is_null[row] else _number(summary, levels.occurs[row], counts[row])
        for row in range(answered.part.n_rows)
    ]


def shortfall_notes(answered: Sequence[AnsweredPart]) -> Iterator[str]:
    """What numbers of levels are known to miss, for a receipt; one note for each of them."""
    for one in answered:
        for summary in one.part.summaries:
            levels = _levels(one, summary)
            if (levels.is_short | _is_null(summary, levels)).any():
                yield _note(summary, levels)


def _is_null(summary: LevelSummary, levels: _Levels) -> Flags:
    """The rows in which the number is not shown, (n_rows,)."""
    is_null = levels.is_mostly_missed | levels.is_lost
    return is_null | levels.may_miss_half if summary.statistic in BOUNDED else is_null


def _levels(answered: AnsweredPart, summary: LevelSummary) -> _Levels:
    part = answered.part
    found = answered.levels(summary)
    confidence = part.cut_at(part.confidence)
    occurs, possible = found.found(confidence), found.possible(confidence)
    is_missed = ~occurs & _matters(summary.statistic, occurs)
    missed = np.where(is_missed, found.counts, 0.0).sum(axis=1)
    is_short = np.zeros(part.n_rows, dtype=np.bool_)
    if (missed > 0).any():
        at = np.divmod(np.array(summary.cells, dtype=np.int64), len(summary.values))
        spread = _spread_of_sums(answered, summary.aggregate, is_missed[at], at[0])
        limits = [threshold(one, part.n_rows, part.confidence) for one in spread.tolist()]
        is_short = missed > np.array(limits)
    if summary.statistic is LevelStatistic.MODE:  # which is right, if it was found
        is_short &= ~occurs.any(axis=1)
    is_lost = summary.rows_of(answered.unknown_rows(summary.aggregate), part.n_rows)
    return _Levels(found.counts, occurs, possible, is_lost, missed, is_short & ~is_lost)


def _matters(statistic: LevelStatistic, occurs: Flags) -> Flags:
    """Levels that would change the number if they occurred, (n_rows, n_levels)."""
    if statistic not in _EXTREMES:
        return np.ones(occurs.shape, dtype=np.bool_)
    ordered = occurs if statistic is LevelStatistic.LEAST else occurs[:, ::-1]
    beyond = ~np.logical_or.accumulate(ordered, axis=1)
    return beyond if statistic is LevelStatistic.LEAST else beyond[:, ::-1]


def _spread_of_sums(
    answered: AnsweredPart, aggregate: int, is_summed: Flags, row: NDArray[np.int64]
) -> Floats:
    """The standard deviation of the noise in each row's sum of some of its counts, (n_rows,).

    Counts may share measurements, so their errors may be dependent. Where no history says how, the
    sum is as wide as if all were off in the same direction.
    """
    posteriors = answered.aggregates[aggregate].posteriors
    (chosen,) = np.nonzero(is_summed)
    shape = (answered.part.n_rows, len(posteriors))
    sums = sparse.csr_array((np.ones(chosen.size), (row[chosen], chosen)), shape=shape)
    if answered.is_boxed:
        return np.asarray(sums @ standard_deviations(posteriors))
    coefficients, scales, _ = error_parts(posteriors, answered.history)
    variances: Floats = (sums @ coefficients).power(2) @ (2 * np.square(scales))
    return np.asarray(np.sqrt(variances))


def _note(summary: LevelSummary, levels: _Levels) -> str:
    n_rows, short, is_null = len(levels.is_short), levels.is_short, _is_null(summary, levels)
    n_short = int(short.sum())
    told = []
    if n_short:
        where = "" if n_rows == 1 else f" in {n_short} of its {n_rows} groups"
        missed = round(float(levels.missed[short].sum()))
        whole = max(missed, round(float(levels.counts[short].sum())))
        told.append(
            f"{summary.sql} misses levels{where}: about {missed} of {whole} records are in levels "
            "whose own counts are near their noise"
        )
        if not is_null[short].all():
            told.append(_SAID[summary.statistic])
    if is_null.any():
        why = "most records are in such levels"
        if summary.statistic in BOUNDED:
            why = f"{_found(levels, is_null)} levels that may occur were found"
        if levels.is_lost.any():
            why = "nothing is known of some levels"
        what = "it" if told else summary.sql
        among = "" if n_rows == 1 else f" in {int(is_null.sum())} of its {n_rows} groups"
        told.append(f"{what} is NULL{among}, where {why}")
    return f"{'; '.join(told)}. A smaller half_width finds more."


def _found(levels: _Levels, chosen: Flags) -> str:
    """How many levels were found in some rows, of how many that may occur."""
    if len(chosen) > 1:
        return "fewer than half of the"
    return f"{int(levels.occurs.sum())} of {int(levels.possible.sum())}"


_SAID: Final = {
    LevelStatistic.COUNT: "there are at least as many levels as it says",
    LevelStatistic.SUM: "it is the sum of the levels that were found alone",
    LevelStatistic.LEAST: "the smallest level is below it",
    LevelStatistic.LARGEST: "the largest level is above it",
    LevelStatistic.MODE: "no level is known to be the most frequent",
}


def _number(summary: LevelSummary, occurs: Flags, counts: Floats) -> LevelValue:
    """One row's number."""
    places = np.flatnonzero(occurs)
    match summary.statistic:
        case LevelStatistic.COUNT:
            return int(places.size)
        case LevelStatistic.SUM:
            return math.fsum(float(summary.values[place]) for place in places.tolist())  # type: ignore[arg-type]  # numbers, by the planner
        case _ if not places.size:
            return None
        case LevelStatistic.LEAST:
            return summary.values[int(places[0])]
        case LevelStatistic.LARGEST:
            return summary.values[int(places[-1])]
        case LevelStatistic.MODE:
            return summary.values[int(counts.argmax())]


TESTED_SCHEMA: Final = pa.schema(
    [
        pa.field("statistic", pa.float64()),  # null: the cells are too small for a test
        pa.field("p_value", pa.float64(), nullable=False),
        pa.field("degrees_of_freedom", pa.int64(), nullable=False),
        pa.field("decision", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("level", pa.float64(), nullable=False),
        pa.field("replicates", pa.int64(), nullable=False),
    ]
)
DEPENDENT: Final = "dependent"
NOT_REJECTED: Final = "not rejected"
CANNOT_TELL: Final = "cannot tell"


def tested(answered: AnsweredPart, question: IndependenceQuestion) -> pa.Table:
    """The outcome of a test on a part's counts.

    Parameters
    ----------
    answered : AnsweredPart
        The answered part; its one aggregate holds the cells, with the last key varying fastest.

    Returns
    -------
    pyarrow.Table
        One row of `TESTED_SCHEMA`. It is the same for the same question on the same noisy counts,
        which seed the simulation.
    """
    (cells,) = answered.aggregates
    noisy, law = _table(answered, question)
    outcome = independence_test(
        noisy,
        law,
        generator=_generator(cells, question),
        level=question.level,
        n_replicates=question.n_replicates,
        n_tested=question.n_tested,
        kind=Statistic.G2 if question.is_likelihood_ratio else Statistic.PEARSON,
    )
    row = {
        "statistic": None if math.isnan(outcome.statistic) else outcome.statistic,
        "p_value": outcome.p_value,
        "degrees_of_freedom": outcome.degrees_of_freedom,
        "decision": _decision(outcome),
        "reason": outcome.reason.value,
        "level": question.level,
        "replicates": outcome.n_replicates,
    }
    return pa.Table.from_pylist([row], schema=TESTED_SCHEMA)


def _table(answered: AnsweredPart, question: IndependenceQuestion) -> tuple[Floats, TableLaw]:
    """The noisy counts, and how such tables come about."""
    if answered.cells is not None:
        return answered.cells.counts, answered.cells.law
    (cells,) = answered.aggregates
    return table_from_history(cells.posteriors, answered.history, question.shape)


def _decision(outcome: IndependenceTest) -> str:
    """The decision as text; "not rejected" and "not tested" are different outcomes."""
    if outcome.decision is Decision.REJECTED:
        return DEPENDENT
    return CANNOT_TELL if outcome.reason is Reason.SMALL_CELLS else NOT_REJECTED


def _generator(cells: AnsweredAggregate, question: IndependenceQuestion) -> np.random.Generator:
    """A generator seeded by public values: the question and the noisy counts."""
    asked = hashlib.sha256(repr(question).encode())
    for block in cells.aggregate.blocks:
        asked.update(fingerprint(block).encode())
    asked.update(np.array([one.value for one in cells.posteriors]).tobytes())
    return np.random.default_rng(int.from_bytes(asked.digest()))


def consistent(answered: AnsweredPart) -> AnsweredPart:
    """The part with counts that agree, if the statement asks for that."""
    sets = answered.part.consistency
    if sets is None:
        return answered
    (counts,) = answered.aggregates
    solver: Solver | None = None
    tables = _tables(sets, counts.posteriors)
    if sets.consistency is Consistency.EXACT:
        posteriors = _exact(sets, tables, counts.posteriors, answered.history)
    else:
        made = (
            reconciled_globally(tables)
            if sets.consistency is Consistency.GLOBAL
            else nonnegative(tables)
        )
        solver = made.solver
        values = _in_rows(sets, [table.values for table in made.tables])
        posteriors = tuple(
            Posterior(value, UnknownLaw(), low=one.low, high=one.high)
            for value, one in zip(values.tolist(), counts.posteriors, strict=True)
        )
    agreed = (replace(counts, posteriors=posteriors),)
    return replace(answered, aggregates=agreed, solver=solver)


def _tables(sets: ConsistentSets, posteriors: Sequence[Posterior]) -> list[NoisyTable]:
    """The sets as tables over the keys' positions, with the mean variance of their cells."""
    values = np.array([one.value for one in posteriors])
    variances = np.array([one.standard_deviation**2 for one in posteriors])
    tables, start = [], 0
    for keys in sets.sets:
        shape = [sets.sizes[place] for place in keys]
        own = slice(start, start + int(np.prod(shape)))
        start = own.stop
        cells = np.transpose(values[own].reshape(shape), np.argsort(keys))
        scope = tuple(sorted(_name(place) for place in keys))
        tables.append(NoisyTable(scope, cells, float(variances[own].mean())))
    return tables


def _name(place: int) -> str:
    """The name of a key as an axis; names sort as positions do."""
    return f"{place:04d}"


def _in_rows(sets: ConsistentSets, tables: Sequence[Floats]) -> Floats:
    """The cells of all tables in the order of the part's rows."""
    rows = [
        np.transpose(cells, np.argsort(np.argsort(keys))).ravel()
        for keys, cells in zip(sets.sets, tables, strict=True)
    ]
    return np.concatenate(rows)


def _exact(
    sets: ConsistentSets,
    tables: Sequence[NoisyTable],
    posteriors: Sequence[Posterior],
    history: Places,
) -> tuple[Posterior, ...]:
    """The projection, each cell with the law of the noises that it combines."""
    noises, scales, is_gaussian = error_parts(posteriors, history)
    widenings = np.array([one.lattice_widening for one in posteriors])
    values = _in_rows(sets, projected(tables))
    found: list[Posterior] = []
    for holder, (keys, table) in enumerate(zip(sets.sets, tables, strict=True)):
        shape = [sets.sizes[place] for place in keys]
        for cell in range(table.values.size):
            summed = np.zeros(table.values.size)
            summed[cell] = 1.0
            probe = np.transpose(summed.reshape(shape), np.argsort(keys))
            shares = _in_rows(sets, cell_coefficients(tables, holder, probe))
            own = posteriors[len(found)]
            law = law_of_noises(np.abs(shares @ noises) * scales, is_gaussian)
            widening = float(np.abs(shares) @ widenings)
            found.append(Posterior(float(values[len(found)]), law, widening, own.low, own.high))
    return tuple(found)
