"""Looking at noise several times: searches for a width, and decisions about claims.

The correction for intervals whose own noise decides when measuring stops.

A target that depends on answers, relative to one or on a formula, is reached in rounds: measure,
read the noisy values, and measure more until the widths that they require are reached. Errors in
one direction make such a search stop early: errors away from zero for a relative target, since the
answer then seems to need less accuracy. So the final interval misses more often than one whose
width was fixed in advance. Let d be the error probability of each round's interval, half of it on
each side.

    the answer is shown and is wrong  =>  it erred away from zero where it stopped
                                          though it was not to stop there yet,         at most d / 2
                                      or  it erred so in the first round that is narrow
                                          enough for the truth,                                d / 2
                                      or  it erred towards zero in that round                  d / 2

An error towards zero stops no search early. One that lets the search continue past that round is
already counted in the last line, wherever the search then ends. Where the true value requires a
width ``w``, a search can stop too early without an error only at widths up to ``(1 + 2 * relative)
* w``, and rounds narrow by a tenth or more: for a small relative target there is at most one such
round; in wider ones the error would have to be several half-widths. So the error probability is at
most three halves of d, and intervals and purchases of a search use two thirds of the requested
error probability.

The sum neglects two things. The widths of rounds also depend on earlier noise, since later noise
refines it. A relative target near 1 may have several rounds close to its end. Both are simulated,
where the first round may be the last one
(`tests/proxy/engine/test_optional_stopping.py`, and through the whole engine in
`tests/end_to_end/test_coverage_of_searches.py`). The simulated error was up to 0.84 of the
requested error probability for relative targets up to a half, and 0.9 near 1; a target near 1 whose
search begins a hundred times too wide takes a dozen looks, and missed up to 1.3 times as often as
requested. Without the correction it was 1.11 times at 0.05 and 0.2, 1.2 at a half, 1.4 near 1.

How long measuring goes on until it is decided whether claims hold.

A claim says that an answer is above an end, or below it. Measuring goes from wide to narrow until
each end is so far from the noisy answer that noise alone does not explain it. Each look at noise
may err, and so the error probability is divided among the looks. The widths at which looks may take
place are a grid that is fixed before the first one, by public numbers alone:

    floor, 1.5 floor, 1.5**2 floor, ..     up to half of the farthest that an end can be away

    a decision is wrong  =>  at some width of the grid, or at what was known before, the noise is
                             beyond the answer's distance from the end that it decides

With ``n`` such widths, each with the error probability ``d / n``, a wrong decision has at most the
probability ``d``, whatever the truth is, and however the looks are chosen among the widths: the
noise at a width has the same law whether or not it is looked at, as noise is refined
(Boole's inequality; `accountant/proofs` for the refinement). So do the intervals at all widths
together miss with at most the error probability that is asked for, if each has its ``n``-th part.

Fewer looks than widths are taken: those at which a decision is unlikely, after what was seen, are
left out. This costs nothing but widths.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

RATIO: Final = 1.5  # of the widths of neighbouring looks: a decision costs about 1.2 times too much
N_LOOKS_MAX: Final = 200  # more widths than there can be between two positive doubles that matter


TAILS: Final = Fraction(3, 2)  # the error probability of a search, relative to that of a round


def surer(confidence: float) -> float:
    """The confidence for the intervals of a search, so that the final one has the requested one.

    >>> round(surer(0.95), 6)
    0.966667
    """
    if not 0 < confidence < 1:
        return confidence  # out of range, which the target's own check reports
    return float(1 - (1 - Fraction(confidence)) / TAILS)


@dataclass(frozen=True, slots=True)
class Decision:
    """The ends that an answer is compared with, and how surely.

    Parameters
    ----------
    ends : tuple of float
        In units of the answer.
    error : float
        The probability that a claim may be decided wrongly.
    farthest : float
        How far from an end the true value can be at most, by public bounds.
    is_requested : bool
        Whether the statement says how surely it is to be decided.
    claims : tuple of str
        What is decided, as the analyst wrote it.

    Examples
    --------
    >>> decision = Decision((100.0,), error=0.01, farthest=1000.0)
    >>> decision.widths(floor=100.0).round(1).tolist()
    [337.5, 225.0, 150.0, 100.0]
    >>> decision.n_looks(floor=100.0), decision.error_of_look(floor=100.0)
    (5, 0.002)
    """

    ends: tuple[float, ...]
    error: float
    farthest: float
    is_requested: bool = False
    claims: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.ends or not all(map(math.isfinite, self.ends)):
            raise ValueError("a decision needs ends that are finite numbers")
        if not 0 < self.error < 1:
            raise ValueError(f"the error probability is between 0 and 1, not {self.error}")
        if not 0 < self.farthest < math.inf:
            raise ValueError(f"the farthest distance is a positive number, not {self.farthest}")

    def widths(self, floor: float) -> NDArray[np.float64]:
        """The half-widths at which looks may take place, from the widest down to `floor`."""
        if not floor > 0:
            raise ValueError(f"the floor is a positive half-width, not {floor}")
        span = max(self.farthest / 2 / floor, 1.0)
        n_steps = min(math.floor(math.log(span, RATIO) + 1e-9), N_LOOKS_MAX)
        return np.asarray(floor * RATIO ** np.arange(n_steps, -1, -1, dtype=np.float64))

    def n_looks(self, floor: float) -> int:
        """The widths of the grid, and what was known before."""
        return int(self.widths(floor).size) + 1

    def error_of_look(self, floor: float) -> float:
        """The probability with which one look at one end may decide wrongly."""
        return self.error / (self.n_looks(floor) * len(self.ends))

    def with_ends(self, other: "Decision") -> "Decision":
        """The decision about the ends of both, at the smaller error probability."""
        return replace(
            self,
            ends=tuple(dict.fromkeys((*self.ends, *other.ends))),
            error=min(self.error, other.error),
            farthest=max(self.farthest, other.farthest),
            claims=tuple(dict.fromkeys((*self.claims, *other.claims))),
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """That an aggregate of a part is compared with constants: whether it lies in a range.

    Parameters
    ----------
    aggregate : int
        Its position in the part.
    low, high : float
        The ends of the range, perhaps infinite.
    text : str
        What the analyst wrote.
    chooses_rows : bool
        Whether it decides in HAVING which rows are shown.
    """

    aggregate: int
    low: float
    high: float
    text: str
    chooses_rows: bool = False

    @property
    def ends(self) -> tuple[float, ...]:
        """The ends that are finite."""
        return tuple(end for end in (self.low, self.high) if math.isfinite(end))


@dataclass(frozen=True, slots=True)
class SubqueryClaim:
    """A claim about answers of several SELECTs, each with one row.

    Parameters
    ----------
    name : str
        The relation of one row with its probability, which the outer SQL reads.
    answers : tuple of (str, int)
        The part and the place of each answer, in the order of the columns ``d0, d1, ..``.
    sql : str
        DuckDB's SQL for the probability, over the relation ``draws`` with a row for each draw of
        the true values.
    """

    name: str
    answers: tuple[tuple[str, int], ...]
    sql: str
