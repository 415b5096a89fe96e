"""How a command fails: what it raises for the shell, and that failure as JSON for a program.

Values and text only: the command line loads this module before it knows which command was called.
"""

import json
import math
from typing import Any, Final

from cube.refusals import TacitError
from proxy.protocol import tacit_pb2

EXIT_CANNOT_START: Final = 1
EXIT_REFUSED: Final = 2
EXIT_UNREACHABLE: Final = 3


class Declined(Exception):
    """The server refused, with its own message and code.

    Parameters
    ----------
    message : str
        What a person reads: what is wrong, where, and what works instead.
    detail : tacit_pb2.RefusalDetail, optional
        What a program reads; None if the server sent none.
    """

    def __init__(
        self, code: str, message: str, detail: tacit_pb2.RefusalDetail | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.detail = detail


class Unreachable(Exception):
    """No Tacit server answers at the address.

    Parameters
    ----------
    disagreement : str, optional
        What the two sides disagree about, if a server is there and that is TLS.
    """

    def __init__(self, address: str, disagreement: str | None = None) -> None:
        super().__init__(address)
        self.address = address
        self.disagreement = disagreement


class FailedInJson(Exception):
    """A command that was asked for JSON has failed, so that its error is shown as JSON."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def failure_of(error: Exception) -> tuple[Declined, int]:
    """What is shown of an error, and the exit code of a command that ends with it."""
    match error:
        case Declined():
            return error, EXIT_REFUSED
        case TacitError():
            return Declined(error.code, error.explain()), EXIT_CANNOT_START
        case Unreachable(disagreement=str(disagreement)):
            return Declined("tls", disagreement), EXIT_UNREACHABLE
        case Unreachable():
            start = "Start one with `tacit serve CONFIG`, or name another with --server HOST:PORT."
            message = f"No Tacit server answers at {error.address}. {start}"
            return Declined("server_unreachable", message), EXIT_UNREACHABLE
        case _:  # its text may hold private data
            kind = type(error).__name__
            message = f"Something unexpected went wrong ({kind}). Nothing more is shown."
            return Declined("internal_error", message), EXIT_CANNOT_START


def failure_line(failure: Declined) -> str:
    """An error as a person reads it: without terminal control characters; line breaks are kept."""
    shown = (c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in failure.message)
    return f"error [{failure.code}]: {''.join(shown)}"


def failure_json(failure: Declined) -> str:
    """An error as one JSON object; what there is nothing to say about is null."""
    detail = failure.detail or tacit_pb2.RefusalDetail()
    shown: dict[str, Any] = {
        "code": failure.code,
        "message": detail.message or failure.message,
        "hint": detail.hint or None,
        "position": None,
        "shortfall": None,
    }
    if detail.HasField("position"):
        place = detail.position
        shown["position"] = {"line": place.line, "column": place.column}
    if detail.HasField("shortfall"):
        shown["shortfall"] = _shortfall(detail.shortfall)
    if detail.HasField("epsilon_spent"):
        shown["epsilon_spent"] = detail.epsilon_spent
        shown["free_widths"] = [
            {"answer": one.answer, "half_width": _finite(one.half_width)}
            for one in detail.free_widths
        ]
    return json.dumps(shown)


def _shortfall(shortfall: tacit_pb2.Shortfall) -> dict[str, Any]:
    """Epsilons as text, so that they are exact and can be given back to --epsilon."""
    has_left = shortfall.HasField("epsilon_left")
    return {
        "table": shortfall.table,
        "epsilon_needed": shortfall.epsilon_needed,
        "epsilon_left": shortfall.epsilon_left if has_left else None,
        "account": shortfall.account or None,
        "window": shortfall.window or None,
        "free": _offered(shortfall.free) if shortfall.HasField("free") else None,
        "fitting": _offered(shortfall.fitting) if shortfall.HasField("fitting") else None,
        "renews_on": shortfall.renews_on or None,
    }


def _offered(width: tacit_pb2.OfferedWidth) -> dict[str, float | None]:
    half_width = width.half_width if width.HasField("half_width") else None
    return {"factor": width.factor, "half_width": half_width}


def _finite(number: float) -> float | None:
    """A number as JSON has it, which has no infinity."""
    return number if math.isfinite(number) else None
