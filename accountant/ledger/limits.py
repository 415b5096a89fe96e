"""Limits on the part of a table's budget that an analyst or group may spend in a window of time.

The table's budget is the guarantee: it applies to the spending of all analysts together, because
analysts may pool what they know; for ever, or, if the budget renews, in each of its windows. A
limit only divides it. When the window of a limit ends, every day or month, its holder may spend
again; a limit is no promise about what is learnt in total.

An analyst's spending is the sum of the increases of the table's cost by their charges. Values only;
the history (history/table_history.py) keeps the sums and refuses a charge beyond a limit. Proof:
proofs/gate.md, "Limits".
"""

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final

NAME_LENGTH_MAX: Final = 200


class Window(StrEnum):
    """How long spending counts towards a limit, or a budget. Windows begin at midnight UTC."""

    DAY = "day"
    WEEK = "week"  # from Monday
    MONTH = "month"
    QUARTER = "quarter"  # from January, April, July and October
    YEAR = "year"
    NEVER = "never"  # it counts for ever

    def start(self, at: str) -> str:
        """The beginning of the window that contains the moment `at`; both as sortable UTC text.

        >>> Window.MONTH.start("2026-11-21T20:07:49.123+00:00")
        '2026-11-01T00:00:00.000+00:00'
        >>> Window.NEVER.start("2026-11-21T20:07:49.123+00:00")
        ''
        """
        if self is Window.NEVER:
            return ""
        return _midnight(self._first_day(at))

    def end(self, at: str) -> str:
        """The beginning of the window after that of `at`; empty if it never ends.

        >>> Window.QUARTER.end("2026-11-21T20:07:49.123+00:00")
        '2027-01-01T00:00:00.000+00:00'
        """
        if self is Window.NEVER:
            return ""
        within = self._first_day(at) + dt.timedelta(days=_LONGEST[self])
        return self.start(_midnight(within))

    def _first_day(self, at: str) -> dt.date:
        day = dt.datetime.fromisoformat(at).date()
        match self:
            case Window.WEEK:
                day -= dt.timedelta(days=day.weekday())
            case Window.MONTH:
                day = day.replace(day=1)
            case Window.QUARTER:
                day = day.replace(month=day.month - (day.month - 1) % 3, day=1)
            case Window.YEAR:
                day = day.replace(month=1, day=1)
        return day


# The days of the longest window of a kind: from its first day they lead into the next one.
_LONGEST: Final = {
    Window.DAY: 1,
    Window.WEEK: 7,
    Window.MONTH: 31,
    Window.QUARTER: 92,
    Window.YEAR: 366,
}


def _midnight(day: dt.date) -> str:
    return dt.datetime.combine(day, dt.time(), dt.UTC).isoformat(timespec="milliseconds")


class SubjectKind(StrEnum):
    """To whom a limit applies."""

    ANALYST = "analyst"
    GROUP = "group"
    EACH_ANALYST = "each_analyst"  # every analyst separately, unless they have their own limit


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """An analyst, a group of analysts, or each analyst.

    >>> str(Subject(SubjectKind.GROUP, "sales")), str(Subject(SubjectKind.EACH_ANALYST))
    ('group:sales', 'each_analyst')
    """

    kind: SubjectKind
    name: str = ""

    def __post_init__(self) -> None:
        if (self.kind is SubjectKind.EACH_ANALYST) != (not self.name):
            raise ValueError("a limit must name an analyst or a group, or be for each analyst")
        if self.name:
            check_name(self.name)

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else str(self.kind)

    @classmethod
    def parse(cls, text: str) -> "Subject":
        """The subject that `str` wrote; ValueError if it is none."""
        kind, _, name = text.partition(":")
        return cls(SubjectKind(kind), name)


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit of a subject on one table.

    Parameters
    ----------
    subject : Subject
    epsilon : Fraction, optional
        The most in one window; None for no more than the table's budget.
    window : Window
    per_query : Fraction, optional
        The most that one charge may add.
    """

    subject: Subject
    epsilon: Fraction | None = None
    window: Window = Window.NEVER
    per_query: Fraction | None = None

    def __post_init__(self) -> None:
        for value in (self.epsilon, self.per_query):
            if value is not None and value < 0:
                raise ValueError("a limit must not be negative")

    @property
    def is_empty(self) -> bool:
        """Whether the limit limits nothing: setting such a limit removes the present one."""
        return self.epsilon is None and self.per_query is None


@dataclass(frozen=True, slots=True)
class Payer:
    """Who pays: an analyst, and the groups whose limits their spending counts towards."""

    analyst: str
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if list(self.groups) != sorted(set(self.groups)):
            raise ValueError("groups must be sorted and distinct")
        for name in (self.analyst, *self.groups):
            check_name(name)

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """Every account on which a charge counts."""
        groups = (Subject(SubjectKind.GROUP, name) for name in self.groups)
        return (Subject(SubjectKind.ANALYST, self.analyst), *groups)


def check_name(name: str) -> None:
    """Raise ValueError unless `name` can name an analyst or a group on one line of a report."""
    if not 0 < len(name) <= NAME_LENGTH_MAX or not name.isprintable() or name != name.strip():
        raise ValueError(f"a name must have 1 to {NAME_LENGTH_MAX} printable characters")
