"""Timestamp columns: moments on one place's clock, cut down to whole minutes, hours or days.

A level is the beginning of a step, and from then on that is what the column holds: what is compared
and grouped by, and what is protected. Levels are times on the wall of one place, without an offset;
where a source keeps moments with a zone, `time_zone` says whose clock they are read on. A year of
minutes is half a million levels, so they are made by arithmetic and listed only if asked for.

Not here: how a source stores moments, or how a clock of one zone is read on that of another.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from cube.axis import Axis
from cube.cached import cached_property

STEPS: Final[Mapping[str, dt.timedelta]] = {
    "minute": dt.timedelta(minutes=1),
    "hour": dt.timedelta(hours=1),
    "day": dt.timedelta(days=1),
}


@dataclass(frozen=True, kw_only=True)
class TimestampAxis(Axis):
    """A column of moments from ``low`` to the end of the step that begins at ``high``.

    Parameters
    ----------
    low, high : datetime.datetime
        The first and the last level, without a zone; each begins a step.
    step : str
        ``minute``, ``hour`` or ``day``: a moment stands for the step that it is in.
    time_zone : str, optional
        The zone whose clock the levels are on, such as ``Europe/Oslo``; without it, moments that
        know their zone have no level.
    """

    low: dt.datetime
    high: dt.datetime
    step: str
    time_zone: str | None = None
    sql_type: ClassVar[str] = "TIMESTAMP"

    def _check(self) -> None:
        if self.step not in STEPS:
            raise ValueError(f"{self.name}: step {self.step!r} is none of {', '.join(STEPS)}")
        for moment in (self.low, self.high, *([] if self.other is None else [self.other])):
            if not isinstance(moment, dt.datetime) or moment.tzinfo is not None:
                raise ValueError(f"{self.name}: {moment!r} is no date and time without an offset")
        for moment in (self.low, self.high):
            start = self.floor(moment)
            if start != moment:
                raise ValueError(
                    f"{self.name}: {moment} is inside a {self.step}, which begins at {start}"
                )
        if self.low > self.high:
            raise ValueError(f"{self.name}: low {self.low} is after high {self.high}")

    def floor(self, moment: dt.datetime) -> dt.datetime:
        """The beginning of the step that a moment is in.

        >>> noon = dt.datetime(2024, 2, 29, 12)
        >>> axis = TimestampAxis(name="at", low=noon, high=noon, step="hour")
        >>> str(axis.floor(noon + dt.timedelta(minutes=59)))
        '2024-02-29 12:00:00'
        """
        midnight = dt.datetime.combine(moment.date(), dt.time())
        return midnight + (moment - midnight) // STEPS[self.step] * STEPS[self.step]

    def position_of(self, moment: dt.datetime) -> int | None:
        """The position of a level; None if no regular level is this moment."""
        place, rest = divmod(moment - self.low, STEPS[self.step])
        return place if not rest and 0 <= place < self.n_regular else None

    @property
    def n_regular(self) -> int:
        """The number of steps from the first to the last."""
        return (self.high - self.low) // STEPS[self.step] + 1

    @cached_property
    def regular(self) -> tuple[dt.datetime, ...]:
        """The beginning of every step."""
        first, step = np.datetime64(self.low, "us"), np.timedelta64(STEPS[self.step])
        moments: list[dt.datetime] = (first + np.arange(self.n_regular) * step).tolist()
        return tuple(moments)
