"""What owners and auditors do with a ledger: opening it, limits, reports.

Opening the ledger that a configuration names, for the server and for commands beside it.

Limits as owners set them: a partial change, as text, and what a limit leaves at present.

A change keeps what it does not mention. The ledger records the whole limit, so that a reader needs
no earlier entry.

The identity interceptor has checked that the caller's role may call the method. Here it is checked
for which tables.
"""

import datetime as dt
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Protocol

from accountant.ledger import (
    EVERY_TABLE,
    ClockGuard,
    Ledger,
    Limit,
    LimitSet,
    Subject,
    SubjectKind,
    Window,
    open_ledger,
    open_shared_ledger,
)
from accountant.ledger.history import TableHistory
from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import InvalidRequest, NotAllowed
from planner.sql import listed, suggestion
from proxy.api import Caller, LimitStatus, exact_epsilon, unknown_table
from proxy.config import LedgerSettings


def open_configured(settings: LedgerSettings) -> Ledger:
    """The ledger, opened for writing; created if there is none.

    Raises
    ------
    CannotStart
        If it cannot be used, or its key is missing.
    """
    guard = ClockGuard(dt.timedelta(days=settings.clock_step_days_max))
    if settings.url is not None and settings.key is not None:
        return open_shared_ledger(settings.url, settings.key, guard)
    if settings.path is not None:
        return open_ledger(settings.path, guard)
    raise RuntimeError("a ledger that is neither a file nor a database")


BY_CONFIGURATION: Final = "configuration"


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitChange:
    """A change that an owner requests, as text; None for what stays as it is.

    Parameters
    ----------
    subject : str
        ``analyst:NAME``, ``group:NAME`` or ``each_analyst``.
    epsilon, per_query : str, optional
        Decimal numbers.
    window : str, optional
        ``day``, ``week``, ``month``, ``quarter``, ``year`` or ``never``.
    clear : bool
        Whether the existing limit is removed first.
    """

    subject: str
    epsilon: str | None = None
    window: str | None = None
    per_query: str | None = None
    clear: bool = False

    def of(self, before: Limit | None) -> Limit:
        """The limit after the change; empty if none is to remain.

        Raises
        ------
        InvalidRequest, InvalidTarget
            If a part of the change cannot be read, or the change sets nothing.
        """
        subject = subject_named(self.subject)
        limit = Limit(subject) if before is None or self.clear else before
        if self.epsilon is not None:
            limit = replace(limit, epsilon=exact_epsilon("epsilon", self.epsilon))
        if self.per_query is not None:
            limit = replace(limit, per_query=exact_epsilon("per_query", self.per_query))
        if self.window is not None:
            limit = replace(limit, window=_window(self.window))
        if limit.window is not Window.NEVER and limit.epsilon is None:
            raise InvalidRequest(
                "A window needs an epsilon that may be spent in it.", hint="Name epsilon, too."
            )
        if limit.is_empty and not self.clear:
            raise InvalidRequest(
                "This sets no limit.", hint="Name epsilon or per_query, or clear the limit."
            )
        return limit


def change_limit(ledger: Ledger, table: str, change: LimitChange, *, by: str) -> LimitStatus | None:
    """Make a change durable; the limit afterwards, None if none is left.

    A change without effect makes no entry.

    Raises
    ------
    InvalidRequest, InvalidTarget
        If the change cannot be read, or the ledger does not know the table.
    LedgerUnavailable
        If it could not be made durable.
    """
    subject = subject_named(change.subject)

    def build(history: TableHistory) -> LimitSet | None:
        if history.opened is None:
            raise InvalidRequest(
                f"The ledger does not know the table {table[:64]!a} yet.",
                hint="Serve the table once: `tacit serve` enters it in the ledger.",
            )
        before = history.limits.get(subject)
        after = change.of(before)
        is_same = after == before or (before is None and after.is_empty)
        return None if is_same else LimitSet(after, by)

    ledger.append(table, build)
    found = [one for one in limits_of(ledger, table) if one.subject == str(subject)]
    return found[0] if found else None


def set_first_limit(ledger: Ledger, table: str, per_query: Fraction) -> None:
    """Limit each analyst's statements on a table as long as nothing was charged there.

    A limit that an owner has set stays, and from the first charge on only owners change it.

    Raises
    ------
    LedgerUnavailable
        If it could not be made durable.
    """
    every = Subject(SubjectKind.EACH_ANALYST)

    def build(history: TableHistory) -> LimitSet | None:
        if history.units_spent or every in history.limits:
            return None
        return LimitSet(Limit(every, per_query=per_query), BY_CONFIGURATION)

    ledger.append(table, build)


def limits_of(ledger: Ledger, table: str) -> list[LimitStatus]:
    """Every limit on a table, analysts before groups, each with what is spent under it.

    Nothing counts towards an `each_analyst` limit as such: each analyst has their own account.
    """
    history = ledger.history(table)
    now = ledger.now()
    limits = sorted(history.limits.values(), key=lambda limit: limit.subject)
    return [
        LimitStatus(
            subject=str(limit.subject),
            window=limit.window.value,
            limit=limit.epsilon,
            spent=Fraction(
                history.spent_by(limit.subject, limit.window.start(now)), UNITS_PER_EPSILON
            ),
            per_query=limit.per_query,
        )
        for limit in limits
    ]


def unused_limits(ledger: Ledger, table: str, known: Iterable[Subject] = ()) -> list[str]:
    """The limits that no credential's spending counts towards, as sentences for the owner.

    Parameters
    ----------
    known : iterable of Subject
        Who may spend without a credential.
    """
    named = ledger.access.subjects() | set(known)
    unused = sorted(
        subject
        for subject in ledger.history(table).limits
        if subject.kind is not SubjectKind.EACH_ANALYST and subject not in named
    )
    return [_unknown(subject, named) for subject in unused]


def _unknown(subject: Subject, named: Iterable[Subject]) -> str:
    names = sorted(one.name for one in named if one.kind is subject.kind)
    sentence = f"No credential names {subject}."
    nearest = suggestion(subject.name, names)
    return sentence if nearest is None else f"{sentence} {nearest}"


def subject_named(text: str) -> Subject:
    """The subject of a limit; InvalidRequest if the text names none."""
    try:
        return Subject.parse(text)
    except ValueError:
        raise InvalidRequest(
            f"{text[:64]!a} cannot be the subject of a limit.",
            hint=f"Write {_listed(f'{kind}:NAME' for kind in ('analyst', 'group'))} "
            f"or {SubjectKind.EACH_ANALYST}.",
        ) from None


def _window(text: str) -> Window:
    try:
        return Window(text)
    except ValueError:
        raise InvalidRequest(
            f"{text[:64]!a} is not a window.", hint=f"Write one of {_listed(Window)}."
        ) from None


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)


REPORT_FORMATS: Final = ("html", "json", "csv")

MakeReport = Callable[[str], bytes]  # in one of `REPORT_FORMATS`


class LedgerAdmin(Protocol):
    """What the protocols may call. Any method may raise `Refused`."""

    def set_limit(self, caller: Caller, table: str, change: LimitChange) -> LimitStatus | None:
        """Change a limit; the limit afterwards, None if there is none."""
        ...

    def limits(self, caller: Caller, table: str) -> dict[str, list[LimitStatus]]:
        """The limits of one table, or of every table if the name is empty."""
        ...

    def report(self, caller: Caller, report_format: str) -> bytes:
        """The audit report of the whole ledger."""
        ...


class ServedLedgerAdmin:
    """Administration of the ledger that is served.

    Parameters
    ----------
    tables : sequence of str
        The private tables that are served.
    make_report : callable
        Makes the report of the ledger in a format.
    """

    def __init__(self, ledger: Ledger, tables: Sequence[str], make_report: MakeReport) -> None:
        self._ledger = ledger
        self._tables = tuple(tables)
        self._make_report = make_report
        self._reporting = threading.Lock()

    def set_limit(self, caller: Caller, table: str, change: LimitChange) -> LimitStatus | None:
        """Change a limit of a table that the caller owns."""
        (known,) = self._known(caller, table)
        return change_limit(self._ledger, known, change, by=caller.payer.analyst)

    def limits(self, caller: Caller, table: str) -> dict[str, list[LimitStatus]]:
        """The limits of the tables that the caller may know of, or of one of them."""
        known = self._known(caller, table) if table else self._opened(caller)
        return {name: limits_of(self._ledger, name) for name in known}

    def report(self, caller: Caller, report_format: str) -> bytes:
        """The report on every table, for callers to whom every table is open."""
        if EVERY_TABLE not in caller.tables:
            raise NotAllowed(
                "The audit report covers every table of the ledger.",
                hint="Ask the server's owner for a credential that opens every table.",
            )
        if report_format not in REPORT_FORMATS:
            raise InvalidRequest(
                f"There is no report in the format {report_format[:64]!a}.",
                hint=f"Formats are {listed(REPORT_FORMATS)}.",
            )
        with self._reporting:  # one at a time: a report reads and adds up the whole ledger
            return self._make_report(report_format)

    def _opened(self, caller: Caller) -> list[str]:
        return [name for name in self._tables if caller.opens(name)]

    def _known(self, caller: Caller, table: str) -> list[str]:
        """The table with that name, if the caller may know of it."""
        opened = self._opened(caller)
        if table not in opened:
            raise unknown_table(table, opened)
        return [table]
