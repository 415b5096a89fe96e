"""`grows` of a table: the column along which it grows, and how far its rows are closed.

Nothing here moves a horizon; the ledger says how far a table is readable (accountant/gate/gate.py).
"""

import datetime as dt
import re
from dataclasses import dataclass
from typing import Any, Final, Self

from pydantic import Field, field_validator, model_validator

from cube.axis import STEPS, Axis, DateAxis, IntegerAxis, TimestampAxis
from cube.horizon import Span
from cube.refusals import InvalidRequest
from cube.schema import Schema
from proxy.config.moments import LastLevel
from proxy.sources.problems import Problems, Section
from proxy.sources.time_zones import local_time_from

_DURATION: Final = re.compile(r"(\d{1,4}) (hour|day|week)s?")
_KINDS: Final[dict[type[Axis], str]] = {
    DateAxis: "a date",
    IntegerAxis: "a whole number",
    TimestampAxis: "a date, or a moment without an offset",
}
_EXAMPLES: Final[dict[type[Axis], str]] = {
    DateAxis: "2026-10-31",
    IntegerAxis: "1000",
    TimestampAxis: "2026-10-31T23:00",
}
_UNITS: Final = {"hour": "hours", "day": "days", "week": "weeks"}


class GrowsSection(Section):
    """How the file says it."""

    axis: str = Field(min_length=1)
    closed_through: LastLevel | None = None
    closed_after: str | None = None

    @field_validator("closed_after")
    @classmethod
    def _is_a_duration(cls, value: str | None) -> str | None:
        if value is not None and _DURATION.fullmatch(value) is None:
            raise ValueError('should be a duration such as "3 days"')
        return value

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if (self.closed_through is None) == (self.closed_after is None):
            raise ValueError("should say closed_through or closed_after, one of them")
        return self


@dataclass(frozen=True, slots=True)
class Closing:
    """Up to where rows are closed: none is added, taken away or changed any more.

    Parameters
    ----------
    through : date, datetime or int, optional
        The last level whose rows are closed; of a timestamp, a day stands for all of its levels.
    after : timedelta, optional
        How long after its end a day, or a step of a timestamp, is closed.
    """

    through: dt.date | int | None = None
    after: dt.timedelta | None = None

    def horizon(self, schema: Schema, now: dt.datetime) -> int:
        """How many levels of the table's axis, from the first, are closed at a moment.

        A step on the clock of a time zone has ended once no later moment is called by a time in it:
        where clocks are set back, what comes a second time is not over the first time.

        Parameters
        ----------
        schema : Schema
            Of a table that grows.
        now : datetime
            With a time zone.
        """
        if schema.grows is None:
            raise ValueError(f"{schema.table} does not grow")
        axis = schema.by_name[schema.grows]
        if self.after is None:
            return horizon_of(axis, self.through)
        past = now.astimezone(dt.UTC) - self.after
        if isinstance(axis, TimestampAxis):
            local = past if axis.time_zone is None else local_time_from(past, axis.time_zone)
            return horizon_of(axis, local.replace(tzinfo=None) - STEPS[axis.step])
        return horizon_of(axis, max(past.date() - dt.timedelta(days=1), _before(axis)))


def horizon_of(axis: Axis, last: dt.date | int | None) -> int:
    """How many levels there are up to one, which need not be among them.

    Raises
    ------
    InvalidRequest
        If it is not of the axis's type.
    """
    return max(0, min(_place(axis, last, dt.time.max) + 1, axis.size))


def levels_through(axis: Axis, first: dt.date | int, last: dt.date | int) -> Span:
    """The levels from one through another; of a timestamp, a day stands for all of its levels.

    Raises
    ------
    InvalidRequest
        If one is not of the axis's type, or the first comes after the last.
    """
    start = max(0, min(_place(axis, first, dt.time.min), axis.size))
    end = horizon_of(axis, last)
    if _place(axis, first, dt.time.min) > _place(axis, last, dt.time.max):
        raise InvalidRequest(f"{first} comes after {last}.", hint="Write FIRST..LAST.")
    return start, end


def _place(axis: Axis, level: dt.date | int | None, of_a_day: dt.time) -> int:
    """Which level of an unbounded axis this is; of a day, the one that has this time of it."""
    match axis:
        case DateAxis(low=low) if type(level) is dt.date:
            return (level - low).days
        case IntegerAxis(low=low) if type(level) is int:
            return level - low
        case TimestampAxis(low=low) if isinstance(level, dt.date) and not _has_offset(level):
            is_moment = isinstance(level, dt.datetime)
            moment = level if is_moment else dt.datetime.combine(level, of_a_day)
            return (moment - low) // STEPS[axis.step]
    raise InvalidRequest(f"{axis.name} is closed through {_KINDS[type(axis)]}, not {level}.")


def read_level(axis: Axis, written: str) -> dt.date | int:
    """A level of the axis of a growing table, as a person writes it; InvalidRequest otherwise."""
    try:
        if isinstance(axis, TimestampAxis) and len(written) > len(_EXAMPLES[DateAxis]):
            return dt.datetime.fromisoformat(written)
        is_whole = isinstance(axis, IntegerAxis)
        return int(written) if is_whole else dt.date.fromisoformat(written)
    except ValueError:
        example = _EXAMPLES[type(axis)]
        raise InvalidRequest(
            f"{written} is no level of {axis.name}.", hint=f"Write it as {example}."
        ) from None


def closing_of(section: GrowsSection, schema: Schema, problems: Problems) -> Closing | None:
    """What a section says; None with a problem if it does not fit the column.

    Parameters
    ----------
    section : GrowsSection
    schema : Schema
        Of a table that grows.
    problems : Problems
        Where problems are recorded.
    """
    axis = schema.by_name[section.axis]
    keys = ("tables", schema.table, "grows")
    found = _DURATION.fullmatch(section.closed_after or "")
    if found is not None:
        if not isinstance(axis, DateAxis | TimestampAxis):
            what = "is for a column of dates or timestamps; say closed_through"
            problems.add((*keys, "closed_after"), what)
            return None
        return Closing(after=dt.timedelta(**{_UNITS[found[2]]: int(found[1])}))
    try:
        n_closed = horizon_of(axis, section.closed_through)
    except InvalidRequest as wrong:
        problems.add((*keys, "closed_through"), wrong.message.rstrip("."))
        return None
    if not n_closed:
        problems.add((*keys, "closed_through"), f"is before the first level of {axis.name}")
        return None
    return Closing(through=section.closed_through)


def grows_section(values: Any, keys: tuple[str, ...], problems: Problems) -> GrowsSection | None:
    """The section, or its problems; None if there is none."""
    if values is None:
        return None
    return problems.section(GrowsSection, values, (*keys, "grows"))


def _has_offset(moment: dt.date) -> bool:
    return isinstance(moment, dt.datetime) and moment.tzinfo is not None


def _before(axis: Axis) -> dt.date:
    return axis.low - dt.timedelta(days=1) if isinstance(axis, DateAxis) else dt.date.min
