"""How often intervals hold the truth, and how uncertain that share is where some share noise.

Intervals of one session, or of one answer, hold or miss together; sessions are independent. So the
uncertainty is that of sessions (Student's t), or the binomial one if that is wider: a coverage at
the edge of the bar fails it once in 2,000 times, one within it more rarely.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import stats

from benchmarks.report import Bar

COVERAGE: Final = (0.94, 0.96)  # of intervals at 95 %
ODDS: Final = 0.001  # that a share is off by more than its margin


@dataclass(frozen=True, slots=True)
class Coverage:
    """The share of intervals that hold the truth, and how uncertain it is.

    Parameters
    ----------
    n_intervals, n_held : int
    margin : float
        What the share may be off from the true one by chance, but for `ODDS`.
    """

    n_intervals: int
    n_held: int
    margin: float

    @property
    def share(self) -> float:
        """The share."""
        return self.n_held / self.n_intervals if self.n_intervals else math.nan

    @property
    def is_fine(self) -> bool:
        """Whether the true coverage may be in the bar."""
        return self.share + self.margin >= COVERAGE[0] and self.share - self.margin <= COVERAGE[1]


def coverage(held_by_session: Sequence[Sequence[bool]]) -> Coverage:
    """How often intervals hold the truth, of sessions that are independent of each other.

    Parameters
    ----------
    held_by_session : sequence of sequences of bool
        Whether each interval of each session does.
    """
    counts = np.array([[len(held), sum(held)] for held in held_by_session if held])
    if not len(counts):
        return Coverage(0, 0, math.inf)
    n_all, n_held = (int(one) for one in counts.sum(axis=0))
    held_share = n_held / n_all
    margin = float(stats.norm.isf(ODDS / 2)) * math.sqrt(
        max(held_share * (1 - held_share), 1 / n_all) / n_all
    )
    n_sessions = len(counts)
    if n_sessions == 1:
        return Coverage(n_all, n_held, math.inf)
    off = counts[:, 1] - held_share * counts[:, 0]
    deviation = math.sqrt(n_sessions / (n_sessions - 1) * float(off @ off)) / n_all
    clustered = float(stats.t.isf(ODDS / 2, n_sessions - 1)) * deviation
    return Coverage(n_all, n_held, max(margin, clustered))


def coverage_bar(covered: Coverage) -> Bar:
    """Whether intervals at 95 % hold the truth in 94 to 96 of 100 cases."""
    middle = (COVERAGE[0] + COVERAGE[1]) / 2
    allowed = COVERAGE[1] - middle + (covered.margin if math.isfinite(covered.margin) else 1.0)
    off = abs(covered.share - middle) if covered.n_intervals else 1.0
    return Bar("coverage at 95 %, off by", off, allowed, covered.is_fine)


def told(covered: Coverage) -> dict[str, object]:
    """A coverage for JSON, with its exact binomial interval, as if intervals were independent."""
    if not covered.n_intervals:
        return {"intervals": 0}
    found = stats.binomtest(covered.n_held, covered.n_intervals).proportion_ci()
    return {
        "intervals": covered.n_intervals,
        "share": covered.share,
        "binomial_95": [float(found.low), float(found.high)],
        "margin_between_sessions": covered.margin if math.isfinite(covered.margin) else None,
    }
