"""What wires log and do not tell: unexpected errors, by an incident number, and one line a call.

An exception's text may hold private data, so the client gets a fixed text and a number, and the log
the number and the name of the exception's type. SQL and results are never logged, and times only by
the bucket, since how long a measurement takes depends on data.
"""

import logging
import secrets

from proxy.api.requests import Caller
from proxy.monitoring.buckets import edge_of
from proxy.monitoring.events import INTERNAL_CODE
from proxy.monitoring.logs import write_log


def note_incident(error: BaseException, method: str) -> str:
    """Log an unexpected error under a new incident number, which is returned."""
    incident = secrets.token_hex(8)
    write_log(
        logging.ERROR, "incident", incident=incident, method=method, error=type(error).__name__
    )
    return incident


def incident_text(incident: str) -> str:
    """What the client is told."""
    return (
        f"[{INTERNAL_CODE}] Something went wrong inside the server. Nothing more is said here, "
        f"because the reason may hold private data. Its log has incident {incident}."
    )


def log_request(
    method: str, code: str, seconds: float, *, epsilon: float, caller: Caller | None
) -> None:
    """Write one line for a call that is over."""
    who = {} if caller is None else {"analyst": caller.payer.analyst, "role": str(caller.role)}
    write_log(
        logging.INFO,
        "request",
        method=method,
        code=code,
        milliseconds_max=1e3 * edge_of(seconds),
        epsilon=epsilon,
        **who,
    )
