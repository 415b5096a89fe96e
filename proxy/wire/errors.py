"""The outermost layer of every call: errors become statuses, and each call leaves one log line.

A refusal explains itself to the client. Anything else that goes wrong, whatever it is, becomes a
fixed text and an incident number, because an exception's text may hold private data; the log gets
the number and the name of the exception's type, nothing more. SQL and results are never logged, and
times only by the bucket, since how long a measurement takes depends on data. The PostgreSQL wire
logs and tells in the same way.

A call that brought arrivals to a stream leaves nothing at all, unless it was refused: lines, counts
and times of such calls would be an exact count of who came, kept for ever, beside a state that is
made to tell nothing (streams/proofs/pan_privacy.md).
"""

import logging
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NoReturn

import grpc

from cube import refusals
from cube.refusals import TooManyCalls
from proxy.api import Caller
from proxy.identity import caller_of
from proxy.monitoring import (
    CANCELLED_CODE,
    INTERNAL_CODE,
    NO_METHOD_CODE,
    OK_CODE,
    UNWATCHED,
    Stage,
    Watcher,
    edge_of,
    leaves_trace,
    write_log,
)
from proxy.shared.refusal_details import (
    CODE_KEY,
    DETAILS_KEY,
    EPSILON_KEY,
    packed_detail,
    sendable,
)
from proxy.tables import DataReplaced, HorizonMoved


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


INCIDENT_KEY = "tacit-incident"  # trailing metadata: what to quote to the server's owner

DETAILS_BYTES_MAX = 4096  # a status travels in a header, and clients take about 8 KiB of headers

# Methods by which arrivals come. They are not timed: how often that was done would count them.
BRING_ARRIVALS: Final = frozenset(
    {"/tacit.v1.Tacit/Observe", "/arrow.flight.protocol.FlightService/DoPut"}
)


class NotOffered(refusals.InvalidRequest):
    """A call of the protocol that a read-only server of answers has no use for."""


STATUS: Final[dict[type[refusals.Refused], grpc.StatusCode]] = {
    refusals.InvalidSql: grpc.StatusCode.INVALID_ARGUMENT,
    refusals.UnsupportedSql: grpc.StatusCode.INVALID_ARGUMENT,
    refusals.PrivateRows: grpc.StatusCode.INVALID_ARGUMENT,
    refusals.ReadOnly: grpc.StatusCode.INVALID_ARGUMENT,
    refusals.OutsideDomain: grpc.StatusCode.INVALID_ARGUMENT,
    refusals.NotCollected: grpc.StatusCode.INVALID_ARGUMENT,
    refusals.InvalidTarget: grpc.StatusCode.INVALID_ARGUMENT,
    refusals.TooLarge: grpc.StatusCode.INVALID_ARGUMENT,
    refusals.TooSlow: grpc.StatusCode.DEADLINE_EXCEEDED,
    refusals.InvalidRequest: grpc.StatusCode.INVALID_ARGUMENT,
    NotOffered: grpc.StatusCode.UNIMPLEMENTED,
    refusals.UnknownName: grpc.StatusCode.NOT_FOUND,
    refusals.UnknownTicket: grpc.StatusCode.NOT_FOUND,
    refusals.NameTaken: grpc.StatusCode.ALREADY_EXISTS,
    # Not RESOURCE_EXHAUSTED, which ADBC shows as an internal error of the driver.
    refusals.BudgetExhausted: grpc.StatusCode.FAILED_PRECONDITION,
    refusals.LimitReached: grpc.StatusCode.FAILED_PRECONDITION,
    refusals.CostAboveCap: grpc.StatusCode.FAILED_PRECONDITION,
    refusals.GenerationOver: grpc.StatusCode.FAILED_PRECONDITION,
    refusals.TargetNotReached: grpc.StatusCode.FAILED_PRECONDITION,
    TooManyCalls: grpc.StatusCode.RESOURCE_EXHAUSTED,
    refusals.NotAuthenticated: grpc.StatusCode.UNAUTHENTICATED,
    refusals.NotAllowed: grpc.StatusCode.PERMISSION_DENIED,
    refusals.SourceUnavailable: grpc.StatusCode.UNAVAILABLE,
    HorizonMoved: grpc.StatusCode.UNAVAILABLE,
    DataReplaced: grpc.StatusCode.UNAVAILABLE,
    refusals.StoreUnavailable: grpc.StatusCode.UNAVAILABLE,
    refusals.LedgerUnavailable: grpc.StatusCode.UNAVAILABLE,
    refusals.LedgerLost: grpc.StatusCode.UNAVAILABLE,
    refusals.ClockDoubtful: grpc.StatusCode.UNAVAILABLE,
    refusals.Refused: grpc.StatusCode.INVALID_ARGUMENT,
}


@dataclass(frozen=True, slots=True)
class Failure:
    """How a failed call ends: what the client sees, the code the log shows, what it spent.

    `packed` are the details of a refusal, for programs.
    """

    status: grpc.StatusCode
    details: str
    code: str
    incident: str | None = None
    epsilon: Fraction | None = None
    packed: bytes | None = None

    @property
    def trailers(self) -> tuple[tuple[str, str | bytes], ...]:
        """The trailing metadata of the call."""
        incident = () if self.incident is None else ((INCIDENT_KEY, self.incident),)
        spent = () if self.epsilon is None else ((EPSILON_KEY, repr(float(self.epsilon))),)
        packed = () if self.packed is None else ((DETAILS_KEY, self.packed),)
        return ((CODE_KEY, self.code), *incident, *spent, *packed)


class Firewall(grpc.ServerInterceptor):
    """Wraps every method of every service of the server.

    Parameters
    ----------
    watcher : Watcher
        Hears how each call ended, and times what no other stage accounts for.
    """

    def __init__(self, watcher: Watcher = UNWATCHED) -> None:
        self._watcher = watcher
        self._handlers: dict[str, Any] = {}  # guarded, by method: there are few, and they stay

    # The handler's message types vary by method, so the signature is only as precise as Any.
    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Any],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """The method's handler, guarded; None if there is no such method."""
        method = handler_call_details.method
        guarded = self._handlers.get(method)
        if guarded is None:
            handler = continuation(handler_call_details)
            if handler is None:
                self._watcher.called(method, NO_METHOD_CODE)
                return None
            guarded = self._handlers[method] = self._guarded(method, handler)
        return guarded

    def _guarded(self, method: str, handler: Any) -> Any:
        kind = (handler.request_streaming, handler.response_streaming)
        attribute, rebuild = _KINDS[kind]
        behaviour = getattr(handler, attribute)
        guard = _guarded_stream if handler.response_streaming else _guarded_reply
        return rebuild(
            guard(_Method(method, self._watcher), behaviour),
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )


_KINDS: Final[dict[tuple[bool, bool], tuple[str, Callable[..., Any]]]] = {
    (False, False): ("unary_unary", grpc.unary_unary_rpc_method_handler),
    (False, True): ("unary_stream", grpc.unary_stream_rpc_method_handler),
    (True, False): ("stream_unary", grpc.stream_unary_rpc_method_handler),
    (True, True): ("stream_stream", grpc.stream_stream_rpc_method_handler),
}

_Behaviour = Callable[[Any, grpc.ServicerContext], Any]


@dataclass(frozen=True, slots=True)
class _Method:
    """A method, and who hears of its calls."""

    name: str
    watcher: Watcher

    def timed(self) -> AbstractContextManager[object]:
        """Times what happens inside."""
        return (UNWATCHED if self.name in BRING_ARRIVALS else self.watcher).stage(Stage.WIRE)

    def ended(self, code: str, started: float, context: grpc.ServicerContext) -> None:
        """Count and log a call that is over, unless it brought arrivals."""
        if code == OK_CODE and not leaves_trace(context):
            return
        self.watcher.called(self.name, code)
        if code == refusals.NotAuthenticated.code:
            return  # the door logs these at a limited rate, so that they cannot fill a disk
        _log_request(self.name, code, started, context)


def _guarded_reply(method: _Method, behaviour: _Behaviour) -> _Behaviour:
    def guarded(request: Any, context: grpc.ServicerContext) -> Any:
        started = time.monotonic()
        try:
            with method.timed():
                reply = behaviour(request, context)
        except BaseException as error:  # noqa: BLE001 - native code may raise beyond Exception
            failure = judge(error, method.name, context)
        else:
            method.ended(OK_CODE, started, context)
            return reply
        _end(failure, method, started, context)

    return guarded


def _guarded_stream(method: _Method, behaviour: _Behaviour) -> _Behaviour:
    def guarded(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        started = time.monotonic()
        try:
            with method.timed():
                yield from behaviour(request, context)
        except GeneratorExit:  # the client went away
            method.ended(CANCELLED_CODE, started, context)
            raise
        except BaseException as error:  # noqa: BLE001 - native code may raise beyond Exception
            failure = judge(error, method.name, context)
        else:
            method.ended(OK_CODE, started, context)
            return
        _end(failure, method, started, context)

    return guarded


def report_epsilon(context: grpc.ServicerContext, epsilon: Fraction) -> None:
    """Tell the client, and the log, what this call spent."""
    context.set_trailing_metadata(((EPSILON_KEY, repr(float(epsilon))),))


def judge(error: BaseException, method: str, context: grpc.ServicerContext) -> Failure:
    """What becomes of an exception: a refusal explains itself, anything else is an incident."""
    if isinstance(error, refusals.Refused):
        status = next(STATUS[cls] for cls in type(error).__mro__ if cls in STATUS)
        details = header_text(f"[{error.code}] {error.explain()}")
        spent = error.epsilon_spent if isinstance(error, refusals.TargetNotReached) else None
        packed = packed_detail(error, status, details, header_bytes(details))
        return Failure(status, details, error.code, epsilon=spent, packed=packed)
    if isinstance(error, grpc.RpcError) and not context.is_active():
        # Reading a request stream raises this when the client hangs up; the reply has no reader.
        return Failure(grpc.StatusCode.CANCELLED, "The client went away.", CANCELLED_CODE)
    incident = note_incident(error, method)
    details = incident_text(incident)
    return Failure(grpc.StatusCode.INTERNAL, details, INTERNAL_CODE, incident)


def header_text(text: str) -> str:
    """The text, cut so that a status header can carry it.

    gRPC sends a status's text percent-encoded: three bytes for every byte beyond plain ASCII.

    >>> header_text("short")
    'short'
    """
    whole = sendable(text)
    room = DETAILS_BYTES_MAX
    for position, character in enumerate(whole):
        room -= header_bytes(character)
        if room < 0:
            return whole[:position] + " ..."
    return whole


def header_bytes(text: str) -> int:
    """What a status's text takes in its header."""
    return sum(
        1 if " " <= character <= "~" and character != "%" else 3 * len(character.encode("utf-8"))
        for character in text
    )


def _end(
    failure: Failure, method: _Method, started: float, context: grpc.ServicerContext
) -> NoReturn:
    """End a failed call; called outside the handler, so that no exception is chained."""
    if failure.incident is not None:
        method.watcher.incident()
    context.set_trailing_metadata(failure.trailers)
    method.ended(failure.code, started, context)
    context.abort(failure.status, failure.details)


def _log_request(method: str, code: str, started: float, context: grpc.ServicerContext) -> None:
    """One line a call. What it spent is what the service put in the trailing metadata."""
    trailers = dict(context.trailing_metadata() or ())
    caller: Caller | None = None
    with suppress(RuntimeError):  # none, if the call did not come past the door
        caller = caller_of(context)
    log_request(
        method,
        code,
        time.monotonic() - started,
        epsilon=float(trailers.get(EPSILON_KEY, 0)),
        caller=caller,
    )
