"""The times of entries: they never go back, and never jump far ahead unless the owner confirms it.

If an entry had a time far ahead, all later entries would have it too, since times do not go back,
and a limit's window would not end until then. So a clock that is far ahead of the last entry is
refused, unless this process was running while the time passed (by a monotonic clock), or the owner
confirms that the clock is right (`ClockCorrected`).

Proof: proofs/gate.md, "Limits".
"""

import datetime as dt
import time
from collections.abc import Callable
from typing import Final

from cube.refusals import ClockDoubtful

STEP_MAX: Final = dt.timedelta(days=40)  # a month without entries, and a little more
NO_ENTRY: Final = ""  # the time of the last entry where there is none


class ClockGuard:
    """Accepts a clock's time, or refuses it.

    Parameters
    ----------
    step_max : timedelta
        How much later than the last entry the next may be, besides the time this process has run.
    elapsed : callable, optional
        Seconds on a monotonic clock. For tests.
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
        """Note the time of the last entry; from here on this process measures how time passes."""
        if last != self._seen[0]:
            self._seen = last, self._elapsed()

    def stamp(self, now: str, last: str) -> str:
        """The time of an entry that is made when the clock says `now`, after one of time `last`.

        Raises
        ------
        ClockDoubtful
            If the clock is too far ahead.
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
                hint="Nothing is charged while the clock may be wrong. The server's owner "
                "has to set the clock; or, if the clock is right and no entry was "
                "made for so long, run `tacit ledger set-clock`. Queries that the "
                "history can answer still work, and are free.",
            )
        return now


def utc_now() -> str:
    """The time as text that sorts."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
