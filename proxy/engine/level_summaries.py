"""Numbers that are read off noisy counts of levels, for each row of an answered part."""

import math

import numpy as np
from numpy.typing import NDArray

from cube.axis import LevelValue
from planner.level_summary import LevelStatistic, LevelSummary, threshold
from proxy.engine.results import AnsweredPart


def summarised(answered: AnsweredPart, summary: LevelSummary) -> list[LevelValue]:
    """The number of every row: NULL where no level is taken to occur, and it is no count or sum."""
    part = answered.part
    posteriors = answered.aggregates[summary.aggregate].posteriors
    n_levels = len(summary.values)
    cells = np.array(summary.cells, dtype=np.int64)
    counts = np.zeros(part.n_rows * n_levels)
    counts[cells] = [posterior.value for posterior in posteriors]
    least = np.full(counts.size, math.inf)
    least[cells] = [
        threshold(posterior.standard_deviation, n_levels, part.confidence)
        for posterior in posteriors
    ]
    shape = (part.n_rows, n_levels)
    occurs = (counts > least).reshape(shape)
    counts = np.where(occurs, counts.reshape(shape), -math.inf)
    return [_number(summary, occurs[row], counts[row]) for row in range(part.n_rows)]


def _number(
    summary: LevelSummary, occurs: NDArray[np.bool_], counts: NDArray[np.float64]
) -> LevelValue:
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
