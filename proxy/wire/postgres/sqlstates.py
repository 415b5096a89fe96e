"""Errors and notices as PostgreSQL's clients read them: an SQLSTATE, a message, a hint, a place.

A refusal explains itself. Its own stable code stands in the message, as on the other wire; what
only this wire refuses has an SQLSTATE alone.
"""

from collections.abc import Iterator
from typing import Final

from cube import refusals
from cube.refusals import Refused, TextPosition
from proxy.wire.errors import NotOffered
from proxy.wire.postgres.frontend import NotUtf8, ProtocolViolation

SUCCESS: Final = "00000"
WARNED: Final = "01000"
INTERNAL: Final = "XX000"
CANCELLED: Final = "57014"
FAILED_TRANSACTION: Final = "25P02"
NO_TRANSACTION: Final = "25P01"
ACTIVE_TRANSACTION: Final = "25001"
FATAL: Final = "FATAL"
ERROR: Final = "ERROR"
WARNING: Final = "WARNING"
NOTICE: Final = "NOTICE"


class StateError(Refused):
    """A refusal of this wire's own, with its SQLSTATE.

    Parameters
    ----------
    message, hint
        As for every refusal.
    """

    code = "invalid_request"

    def __init__(self, sqlstate: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.sqlstate = sqlstate


_STATES: Final[dict[type[Refused], str]] = {
    refusals.InvalidSql: "42601",
    refusals.ReadOnly: "25006",
    refusals.UnsupportedSql: "0A000",
    refusals.OutsideDomain: "22023",
    refusals.NotCollected: "0A000",
    refusals.InvalidTarget: "22023",
    refusals.TooLarge: "54000",
    refusals.TooSlow: CANCELLED,
    NotUtf8: "22021",
    ProtocolViolation: "08P01",
    NotOffered: "0A000",
    refusals.InvalidRequest: "22023",
    refusals.UnknownTicket: "26000",
    refusals.NameTaken: "42710",
    refusals.NotCovered: "53400",
    refusals.TargetNotReached: "53400",
    refusals.TooManyCalls: "53300",
    refusals.NotAuthenticated: "28P01",
    refusals.NotAllowed: "42501",
    refusals.SourceUnavailable: "58000",
    refusals.StoreUnavailable: "58000",
    refusals.LedgerUnavailable: "58000",
    Refused: "0A000",
}
# An unknown name is one of several things, by how the refusal begins.
_UNKNOWN: Final = (
    ("there is no table", "42P01"),
    ("there is no private table", "42P01"),
    ("there is no schema", "3F000"),
    ("there is no setting", "42704"),
)


def sqlstate_of(refusal: Refused) -> str:
    """The SQLSTATE of a refusal."""
    if isinstance(refusal, StateError):
        return refusal.sqlstate
    if isinstance(refusal, refusals.UnknownName):
        words = refusal.message.casefold()
        found = (state for beginning, state in _UNKNOWN if words.startswith(beginning))
        return next(found, "42703")
    return next(_STATES[kind] for kind in type(refusal).__mro__ if kind in _STATES)


def refusal_fields(refusal: Refused, severity: str = ERROR) -> Iterator[tuple[str, str]]:
    """The fields of an error that is a refusal, but for its place in a text."""
    is_own = isinstance(refusal, StateError | ProtocolViolation)  # its SQLSTATE says everything
    text = refusal.message if is_own else f"{refusal.message} [{refusal.code}]"
    yield from fields(severity, sqlstate_of(refusal), text)
    if refusal.hint is not None:
        yield "H", refusal.hint


def fields(severity: str, sqlstate: str, message: str) -> Iterator[tuple[str, str]]:
    """The fields that every error and notice has."""
    yield "S", severity
    yield "V", severity
    yield "C", sqlstate
    yield "M", message


def place_in(sql: str, position: TextPosition) -> int | None:
    r"""How many characters into a text a line and a column are, counted from 1.

    >>> place_in("SELECT 1\nFROM t", TextPosition(2, 6))
    15
    """
    lines = sql.split("\n")
    if position.line > len(lines):
        return None
    return sum(len(line) + 1 for line in lines[: position.line - 1]) + position.column
