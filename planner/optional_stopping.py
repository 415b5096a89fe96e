"""What it costs an interval that its own noise had a say in when to stop.

A target that depends on answers, relative to one or on a formula, is reached in rounds: measure,
look at the noisy values, and measure more until the widths that they call for are reached. Errors
in one direction make such a search stop early: away from zero for a relative target, for the answer
then seems to need less. So the interval that is shown misses more often than one whose width was
chosen before. Write d for the doubt that each round's interval is cut at, half of it on each side.

    the answer is shown and is wrong  =>  it erred away from zero where it stopped
                                          though it was not to stop there yet,         at most d / 2
                                      or  it erred so in the first round that is narrow
                                          enough for the truth,                                d / 2
                                      or  it erred towards zero in that round                  d / 2

An error towards zero stops no search early. One that lets the search go on past that round is in
the last line already, wherever it then ends. Where the truth calls for a width ``w``, a round is
stopped too early without being wrong only at widths up to ``(1 + 2 * relative) * w``, and rounds
narrow by a tenth or more: for a relative target that is small there is one such round at the most;
in wider ones the error would have to be several half-widths. So three halves of d are a doubt that
holds, and intervals and purchases of a search are cut at two thirds of the doubt that is named.

What the sum leaves out is that the widths of rounds follow from earlier noise as well, which later
noise is a refinement of, and that a relative target near 1 may have more rounds close to its end.
Both are simulated, where the first round may be the last one
(`tests/proxy/engine/test_optional_stopping.py`, and through the whole engine in
`tests/end_to_end/test_coverage_of_searches.py`). Of the doubt named, up to 0.8 was used at relative
targets up to a half, and 0.98 near 1, for one row or several; without the correction 1.11 times at
0.05 and 0.2, 1.2 at a half, 1.4 near 1.
"""

from fractions import Fraction
from typing import Final

TAILS: Final = Fraction(3, 2)  # of a round's doubt, that a search may be wrong by


def surer(confidence: float) -> float:
    """What the intervals of a search are cut at, so that the one shown holds as often as named.

    >>> round(surer(0.95), 6)
    0.966667
    """
    if not 0 < confidence < 1:
        return confidence  # out of range, which the target says
    return float(1 - (1 - Fraction(confidence)) / TAILS)
