"""Turns errors into DBAPI exceptions: a refusal has its code, its hint and its numbers.

    Error                     of ADBC, as are all names without an explanation here
    └── DatabaseError
        ├── Refused           the server does not answer this statement
        │   ├── NotCovered        its budget, a limit or a cap does not allow the target
        │   ├── InvalidStatement  it cannot be read, or asks for what is not given
        │   └── NotNow            the server is busy, or what it needs is not there
        └── InternalError     something went wrong inside the server

The numbers are read from what the driver passes on of the server's answer. Only translates: what a
refusal may say was decided by the server.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NamedTuple

from adbc_driver_manager import (
    AdbcStatusCode,
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
)

from tacit_client import protobuf

DETAILS_KEY: Final = "grpc-status-details-bin"
DETAIL_TYPE: Final = "tacit.v1.RefusalDetail"


class Position(NamedTuple):
    """A place in the SQL; both numbers count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class OfferedWidth:
    """What could be asked for instead.

    Parameters
    ----------
    factor : float
        What every half-width of the request is to be multiplied by.
    half_width : float, optional
        What comes of it, if the request has only one.
    """

    factor: float
    half_width: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """What a program is told of a refusal; what there is nothing to say about is None.

    Parameters
    ----------
    hint : str, optional
    position : Position, optional
    table : str, optional
        The private table whose budget was asked.
    epsilon_needed, epsilon_left : float, optional
        Exact: a double holds every cost there is.
    account, window : str, optional
        Whose limit it is, and how long it lasts.
    free, fitting : OfferedWidth, optional
    renews_on : str, optional
        The day on which the budget renews, if it would then cover the cost.
    epsilon_spent : float, optional
        Of a search that ended short of its target.
    free_widths : mapping of str to float
        Of such a search: the half-widths of each answer that are free now.
    """

    hint: str | None = None
    position: Position | None = None
    table: str | None = None
    epsilon_needed: float | None = None
    epsilon_left: float | None = None
    account: str | None = None
    window: str | None = None
    free: OfferedWidth | None = None
    fitting: OfferedWidth | None = None
    renews_on: str | None = None
    epsilon_spent: float | None = None
    free_widths: Mapping[str, float]


NO_DETAIL: Final = Detail(free_widths={})


def detail_in(details: Mapping[str, bytes]) -> Detail | None:
    """The detail among those of a failed call; None if there is none, or it cannot be read."""
    try:
        packed = protobuf.fields(details[DETAILS_KEY])
        name = (protobuf.text_of(packed, 1) or "").rpartition("/")[2]
        value = packed.get(2, [b""])[-1]
        if name != DETAIL_TYPE or not isinstance(value, bytes):
            return None
        return _detail(protobuf.fields(value))
    except (KeyError, ValueError, ArithmeticError):
        return None


def detail_in_status(trailers: Mapping[str, str | bytes]) -> Detail | None:
    """The detail in the trailers of a call of gRPC, within a `google.rpc.Status`."""
    status = trailers.get(DETAILS_KEY)
    try:
        packed = protobuf.fields(status) if isinstance(status, bytes) else {}
    except protobuf.NotAMessage:
        return None
    found = (detail_in({DETAILS_KEY: one}) for one in packed.get(3, ()) if isinstance(one, bytes))
    return next((one for one in found if one is not None), None)


def _detail(values: dict[int, list[protobuf.Value]]) -> Detail:
    place = next(protobuf.messages_of(values, 4), None)
    shortfall = next(protobuf.messages_of(values, 5), {})
    widths = protobuf.messages_of(values, 7)
    return Detail(
        hint=protobuf.text_of(values, 3) or None,
        position=None if place is None else Position(_whole(place, 1), _whole(place, 2)),
        table=protobuf.text_of(shortfall, 1),
        epsilon_needed=_amount(shortfall, 2),
        epsilon_left=_amount(shortfall, 3),
        account=protobuf.text_of(shortfall, 4) or None,
        window=protobuf.text_of(shortfall, 5) or None,
        free=_width(next(protobuf.messages_of(shortfall, 6), None)),
        fitting=_width(next(protobuf.messages_of(shortfall, 7), None)),
        renews_on=protobuf.text_of(shortfall, 8) or None,
        epsilon_spent=_amount(values, 6),
        free_widths={
            protobuf.text_of(one, 1) or "": protobuf.double_of(one, 2) or 0.0 for one in widths
        },
    )


def _width(values: dict[int, list[protobuf.Value]] | None) -> OfferedWidth | None:
    if values is None:
        return None
    return OfferedWidth(protobuf.double_of(values, 1) or 0.0, protobuf.double_of(values, 2))


def _amount(values: dict[int, list[protobuf.Value]], number: int) -> float | None:
    text = protobuf.text_of(values, number)
    return None if text is None else float(Fraction(text))


def _whole(values: dict[int, list[protobuf.Value]], number: int) -> int:
    return protobuf.integer_of(values, number) or 0


__all__ = [
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "InvalidStatement",
    "NotCovered",
    "NotNow",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Refused",
    "missing_library",
    "refusal_of_call",
    "translated",
]

CODE_KEY: Final = "tacit-code"
NOT_COVERED: Final = frozenset(
    {
        "budget_exhausted",
        "limit_reached",
        "cost_above_cap",
        "generation_over",
        "target_not_reached",
    }
)
INTERNAL_CODE: Final = "internal_error"
UNAVAILABLE: Final = "UNAVAILABLE"
# The statuses of gRPC that ADBC calls an error of the program.
MISTAKES: Final = frozenset(
    {
        "INVALID_ARGUMENT",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "UNAUTHENTICATED",
        "UNIMPLEMENTED",
    }
)
_NO_SERVER: Final = re.compile(r'Error while dialing: ([^"]*)"')
# The driver puts a status before the server's text, and a status and the call behind it.
_DRIVERS_WORDS: Final = re.compile(r"\A[A-Z_]+: \[FlightSQL\] (.*) \(\w+; \w+\)\Z", re.DOTALL)


class Refused(DatabaseError):
    """The server does not answer this statement.

    ``str`` of it is what a person reads: what is wrong, where, and what works instead.

    Parameters
    ----------
    code : str
        The stable code, such as ``budget_exhausted``.
    message : str
    detail : Detail
        The numbers of the refusal, for programs.
    status_code : int
        The status code of ADBC.
    """

    def __init__(self, code: str, message: str, detail: Detail, *, status_code: int) -> None:
        super().__init__(f"[{code}] {message}", status_code=status_code)
        self.code = code
        self.message = message
        self.detail = detail

    @property
    def hint(self) -> str | None:
        """What works instead."""
        return self.detail.hint

    @property
    def position(self) -> Position | None:
        """Where in the SQL."""
        return self.detail.position


class NotCovered(Refused, OperationalError):
    """The budget, a limit or a cap does not allow the target. What is not told is None.

    Epsilons are exact, so that they can be given back to ``epsilon=``.
    """

    @property
    def epsilon_needed(self) -> float | None:
        """What the statement costs."""
        return self.detail.epsilon_needed

    @property
    def epsilon_left(self) -> float | None:
        """What the budget or the limit leaves, or the cap allows."""
        return self.detail.epsilon_left

    @property
    def epsilon_spent(self) -> float | None:
        """What a search had spent before it ended."""
        return self.detail.epsilon_spent

    @property
    def free(self) -> OfferedWidth | None:
        """What the history answers for nothing."""
        return self.detail.free

    @property
    def fitting(self) -> OfferedWidth | None:
        """The narrowest that was found to be within what is left."""
        return self.detail.fitting


class InvalidStatement(Refused, ProgrammingError):
    """The statement cannot be read, or asks for what is not given."""


class NotNow(Refused, OperationalError):
    """The server is busy, or what it needs is not there."""


@contextmanager
def translated() -> Iterator[None]:
    """What ADBC raises within becomes an exception of this module."""
    try:
        yield
    except Error as error:
        if isinstance(error, Refused):
            raise
        raise _translation(error) from None


def _translation(error: Error) -> Error:
    # Names are bytes in this release of the driver, and text by its declaration.
    details = {_text(name): value for name, value in error.details}
    code = _text(details.get(CODE_KEY, b""))
    if (dialed := _NO_SERVER.search(str(error))) is not None:
        return OperationalError(
            f"No Tacit server answers at this address ({dialed[1]}).", status_code=error.status_code
        )
    found = _DRIVERS_WORDS.match(str(error))
    if found is None or not code:
        return error
    message = found[1].removeprefix(f"[{code}] ")
    if code == INTERNAL_CODE:
        return InternalError(message, status_code=error.status_code)
    detail = detail_in(details) or NO_DETAIL
    kind = _kind(code, is_mistake=isinstance(error, ProgrammingError | NotSupportedError))
    return kind(code, message, detail, status_code=error.status_code)


def refusal_of_call(error: Any) -> Error:
    """What a call of `tacit.v1` ended with, a `grpc.RpcError`, as an exception of this module."""
    trailers = dict(error.trailing_metadata() or ())
    code = _text(trailers.get(CODE_KEY, b""))
    status = error.code().name
    adbc_status = getattr(AdbcStatusCode, status, AdbcStatusCode.UNKNOWN)
    message = (error.details() or "").removeprefix(f"[{code}] ")
    if not code or code == INTERNAL_CODE:
        kind = OperationalError if status == UNAVAILABLE else InternalError
        return kind(f"{status}: {message}", status_code=adbc_status)
    detail = detail_in_status(trailers) or NO_DETAIL
    return _kind(code, is_mistake=status in MISTAKES)(
        code, message, detail, status_code=adbc_status
    )


def _kind(code: str, *, is_mistake: bool) -> type[Refused]:
    if code in NOT_COVERED:
        return NotCovered
    return InvalidStatement if is_mistake else NotNow


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", errors="replace")


def missing_library(what: str, library: str) -> ImportError:
    """The error of a method whose library is not installed."""
    return ImportError(f"{what} needs {library}: pip install {library}")
