"""What goes wrong, as DBAPI exceptions: a refusal with its code, its hint and its numbers.

    Error                     of ADBC, as are all names without an explanation here
    └── DatabaseError
        ├── Refused           the server does not answer this statement
        │   ├── NotCovered        its budget, a limit or a cap does not allow the target
        │   ├── InvalidStatement  it cannot be read, or asks for what is not given
        │   └── NotNow            the server is busy, or what it needs is not there
        └── InternalError     something went wrong inside the server

Only translates: what a refusal may say was decided by the server.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

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

from tacit_client.details import (
    NO_DETAIL,
    Detail,
    OfferedWidth,
    Position,
    detail_in,
    detail_in_status,
)

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
        What a program reads.
    status_code : int
        ADBC's.
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
            f"No Tacit server answers ({dialed[1]}).", status_code=error.status_code
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
