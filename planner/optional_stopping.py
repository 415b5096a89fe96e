"""The correction for intervals whose own noise decides when measuring stops.

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

The sum neglects that the widths of rounds also depend on earlier noise, of which later noise is a
refinement, and that a relative target near 1 may have several rounds close to its end. Both are
simulated, where the first round may be the last one
(`tests/proxy/engine/test_optional_stopping.py`, and through the whole engine in
`tests/end_to_end/test_coverage_of_searches.py`). The simulated error was up to 0.84 of the
requested error probability for relative targets up to a half, and 0.9 near 1; a target near 1 whose
search begins a hundred times too wide takes a dozen looks, and missed up to 1.3 times as often as
requested. Without the correction it was 1.11 times at 0.05 and 0.2, 1.2 at a half, 1.4 near 1.
"""

from fractions import Fraction
from typing import Final

TAILS: Final = Fraction(3, 2)  # the error probability of a search, relative to that of a round


def surer(confidence: float) -> float:
    """The confidence for the intervals of a search, so that the final one has the requested one.

    >>> round(surer(0.95), 6)
    0.966667
    """
    if not 0 < confidence < 1:
        return confidence  # out of range, which the target's own check reports
    return float(1 - (1 - Fraction(confidence)) / TAILS)
