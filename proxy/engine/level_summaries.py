"""Numbers that are read off noisy counts of levels, for each row of an answered part.

A level whose noisy count is near the noise is not found. What is left over, the sum of the noisy
counts of such levels, is known better than each of them: where it is clearly above its own noise,
levels are missing for certain, and a note says so. Where most records are in missing levels, the
number is NULL: 2 of 86 levels is no estimate of 86. All of this is computed from noisy counts.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cube.axis import LevelValue
from inference.block_estimates import standard_deviations, values
from inference.joint import error_parts
from planner.level_summary import LevelStatistic, LevelSummary, threshold
from proxy.engine.results import AnsweredPart

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_EXTREMES = (LevelStatistic.LEAST, LevelStatistic.LARGEST)


@dataclass(frozen=True, eq=False)
class _Levels:
    """The levels of every row of a part: what was counted, and what was found.

    Parameters
    ----------
    counts : (n_rows, n_levels) ndarray of float64
        Noisy counts; 0 where no record can be.
    occurs : (n_rows, n_levels) ndarray of bool
    missed : (n_rows,) ndarray of float64
        About how many records are in levels that the number misses.
    is_short : (n_rows,) ndarray of bool
        Whether these are clearly more than noise.
    """

    counts: Floats
    occurs: Flags
    missed: Floats
    is_short: Flags

    @property
    def found(self) -> Floats:
        """About how many records are in levels that were found, (n_rows,)."""
        return np.asarray(np.where(self.occurs, self.counts, 0.0).sum(axis=1))

    @property
    def is_null(self) -> Flags:
        """The rows in which most records are in levels that are missed, (n_rows,)."""
        return self.is_short & (self.missed > self.found)


def summarised(answered: AnsweredPart, summary: LevelSummary) -> list[LevelValue]:
    """The number of every row.

    It is NULL where no level is taken to occur, and it is no count or sum, and where most records
    are in levels that it misses.
    """
    levels = _levels(answered, summary)
    counts = np.where(levels.occurs, levels.counts, -math.inf)
    is_null = levels.is_null
    return [
        None if is_null[row] else _number(summary, levels.occurs[row], counts[row])
        for row in range(answered.part.n_rows)
    ]


def shortfall_notes(answered: Sequence[AnsweredPart]) -> Iterator[str]:
    """What numbers of levels are known to miss, for a receipt; one note for each of them."""
    for one in answered:
        for summary in one.part.summaries:
            levels = _levels(one, summary)
            if levels.is_short.any():
                yield _note(summary, levels)


def _levels(answered: AnsweredPart, summary: LevelSummary) -> _Levels:
    part = answered.part
    posteriors = answered.aggregates[summary.aggregate].posteriors
    n_levels = len(summary.values)
    cells = np.array(summary.cells, dtype=np.int64)
    shape = (part.n_rows, n_levels)
    counts, occurs = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
    at = np.divmod(cells, n_levels) if cells.size else (cells, cells)
    counts[at] = values(posteriors)
    deviations = standard_deviations(posteriors).tolist()
    least = {one: threshold(one, n_levels, part.confidence) for one in set(deviations)}
    occurs[at] = counts[at] > np.array([least[one] for one in deviations])
    is_missed = ~occurs & _matters(summary.statistic, occurs)
    missed = np.where(is_missed, counts, 0.0).sum(axis=1)
    is_short = np.zeros(part.n_rows, dtype=np.bool_)
    if (missed > 0).any():
        spread = _spread_of_sums(answered, summary.aggregate, is_missed[at], at[0])
        limits = [threshold(one, part.n_rows, part.confidence) for one in spread.tolist()]
        is_short = missed > np.array(limits)
    if summary.statistic is LevelStatistic.MODE:  # which is right, if it was found
        is_short &= ~occurs.any(axis=1)
    return _Levels(counts, occurs, missed, is_short)


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
    n_rows, short = len(levels.is_short), levels.is_short
    n_short, n_null = int(short.sum()), int(levels.is_null.sum())
    where = "" if n_rows == 1 else f" in {n_short} of its {n_rows} groups"
    missed = round(float(levels.missed[short].sum()))
    whole = max(missed, round(float(levels.counts[short].sum())))
    said = {
        LevelStatistic.COUNT: "there are at least as many levels as it says",
        LevelStatistic.SUM: "it is the sum of the levels that were found alone",
        LevelStatistic.LEAST: "the smallest level is below it",
        LevelStatistic.LARGEST: "the largest level is above it",
        LevelStatistic.MODE: "no level is known to be the most frequent",
    }[summary.statistic]
    told = [
        f"about {missed} of {whole} records are in levels whose own counts are near their noise"
    ]
    if n_null < n_short:
        told.append(said)
    if n_null:
        among = "" if n_rows == 1 else f" in {n_null} of them"
        told.append(f"it is NULL{among}, where most records are in such levels")
    return (
        f"{summary.sql} misses levels{where}: {'; '.join(told)}. A smaller half_width finds more."
    )


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
