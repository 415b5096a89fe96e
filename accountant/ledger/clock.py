"""The time that entries are stamped with: it does not go back, and does not leap ahead unasked.

An entry that was stamped with a time far ahead would stamp all that come after it, for times do not
go back, and a window that was spent in would not end until then. So a clock that is much further
than the last entry is not believed: unless this process was there while the time passed, by a clock
that only counts, or the owner says that it is right (`ClockCorrected`).

Proof: proofs/gate.md, "Limits".
"""

import datetime as dt
import time
from collections.abc import Callable
from typing import Final

from cube.refusals import ClockDoubtful

STEP_MAX: Final = dt.timedelta(days=40)  # a month in which nobody asks, and a little more
NO_ENTRY: Final = ""  # the time of the last entry where there is none


class ClockGuard:
    """Believes a clock, or refuses.

    Parameters
    ----------
    step_max : timedelta
        How much later than the last entry the next may be, beside what this process saw pass.
    elapsed : callable, optional
        Seconds on a clock that nobody sets. For tests.
    """

    def __init__(
        self,
        step_max: dt.timedelta = STEP_MAX,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._step_max = step_max
        self._elapsed = elapsed
        self._seen = NO_ENTRY, elapsed()

    def note(self, last: str) -> None:
        """Note that the last entry is of this time now: from here on it is seen how time passes."""
        if last != self._seen[0]:
            self._seen = last, self._elapsed()

    def stamp(self, now: str, last: str) -> str:
        """The time of an entry that is made when the clock says `now`, behind one of `last`.

        Raises
        ------
        ClockDoubtful
            If the clock is too far ahead to be believed.
        """
        if now <= last:
            return last
        if last == NO_ENTRY:
            return now
        seen, since = self._seen
        watched = self._elapsed() - since if seen == last else 0.0
        latest = dt.datetime.fromisoformat(last) + self._step_max
        if dt.datetime.fromisoformat(now) - latest > dt.timedelta(seconds=watched):
            raise ClockDoubtful(
                f"The clock says {now}, more than {self._step_max.days} days after the ledger's "
                "last entry.",
                hint="Nothing is charged by a clock that may be wrong. The server's owner sets the "
                "clock; or, if it is right and nobody has asked for so long, runs `tacit ledger "
                "set-clock`. What the history can answer stays free.",
            )
        return now


def utc_now() -> str:
    """The time as text that sorts."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
