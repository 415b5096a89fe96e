"""Limits as owners set them: a partial change, as text, and what a limit leaves at present.

A change keeps what it does not mention. The ledger records the whole limit, so that a reader needs
no earlier entry.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from accountant.ledger.entries import LimitSet
from accountant.ledger.history.table_history import TableHistory
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Limit, Subject, SubjectKind, Window
from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import InvalidRequest
from planner.sql.messages import suggestion
from proxy.api.epsilon import exact_epsilon
from proxy.api.requests import LimitStatus

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
                hint="It does once the table has been served for the first time.",
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
    """The subjects of limits that nobody's spending counts towards, as sentences for the owner.

    Parameters
    ----------
    ledger : Ledger
    table : str
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
