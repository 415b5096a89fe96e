"""The interceptor that every call passes before a byte of its request is read.

It identifies the caller and checks that their role may call this method and that they have not too
many calls open. Then the method runs as it would without the interceptor, with the caller's fair
share of the process and within its time limit. Health and reflection are open to everybody.

The caller of a call is noted for as long as it lasts: the interceptor sets it, the services read
it. It is kept under the call's own context object, which every part of one call receives and no
other call does, whichever thread runs it. A call without a caller is a programming error.

Methods that take one message are served as methods that take a stream of one message: otherwise
gRPC would wait for that message first, with a thread for each call, even of a stranger.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from inspect import isgeneratorfunction
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import grpc

from cube.refusals import InvalidRequest, NotAllowed, NotAuthenticated
from proxy.api import Caller
from proxy.identity.authenticate import Authenticator, RejectionReason
from proxy.identity.presented import Malformed, presented_by
from proxy.identity.roles import HANDSHAKE, JOBS, MAY_CALL, OPEN_SERVICES, RESPONDENTS
from proxy.monitoring import write_log
from proxy.scheduling import DEFAULT_TIMES, CallSlots, CallTimes, FairShare, Shift, SlowClientGuard

_CALLERS: Final[WeakKeyDictionary[grpc.ServicerContext, Caller]] = WeakKeyDictionary()


def note_caller(context: grpc.ServicerContext, caller: Caller) -> None:
    """Set the caller of a call."""
    _CALLERS[context] = caller


def caller_of(context: grpc.ServicerContext) -> Caller:
    """The caller of a call; RuntimeError if the call did not pass the interceptor."""
    caller = _CALLERS.get(context)
    if caller is None:
        raise RuntimeError("a call that did not pass the identity interceptor")
    return caller


N_CALLS_OF_ONE_MAX: Final = (
    40  # fewer than there are threads, so that one caller leaves room for others
)
N_OPEN_CALLS_MAX: Final = 8  # of services that need no credential
N_ANSWERS_MAX: Final = 16  # of respondents at once, who need none either: many share one sync
LOG_SECONDS: Final = 1.0  # between two log lines about rejected credentials

Behaviour = Callable[[Any, grpc.ServicerContext], Any]


class Admitted(NamedTuple):
    """A call that is let in: the slot that it is to hold, and the work for it."""

    slot: AbstractContextManager[None]
    shift: Shift


Enter = Callable[[grpc.ServicerContext], Admitted]


class IdentityInterceptor(grpc.ServerInterceptor):
    """Identifies callers and admits their calls.

    Parameters
    ----------
    authenticator : Authenticator
        Identifies the caller.
    slow_clients : SlowClientGuard
        Cuts off clients that are slow.
    times : CallTimes
        How long the work for a call may take.
    share : FairShare, optional
        The process's, if other wires share it.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        slow_clients: SlowClientGuard,
        times: CallTimes = DEFAULT_TIMES,
        share: FairShare | None = None,
    ) -> None:
        self._authenticator = authenticator
        self._slow_clients = slow_clients
        self._times = times
        self._share = FairShare() if share is None else share
        self._failures = FailureLog()
        self._places = CallSlots(N_CALLS_OF_ONE_MAX)
        self._open_places = CallSlots(N_OPEN_CALLS_MAX)
        self._respondents = CallSlots(N_ANSWERS_MAX)

    # The handler's message types vary by method, so the signature is only as precise as Any.
    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Any],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """The method's handler, wrapped; None if there is no such method."""
        handler = continuation(handler_call_details)
        if handler is None:
            return None
        method = handler_call_details.method
        behaviour = _behaviour(handler)
        if getattr(behaviour, "experimental_non_blocking", False):
            return None  # health's Watch: endless streams that anybody could open by the hundred
        enter = (
            self._welcome(method) if method.startswith(OPEN_SERVICES) else self._admission(method)
        )
        passing = self._streaming if handler.response_streaming else self._replying
        rebuild = (
            grpc.stream_stream_rpc_method_handler
            if handler.response_streaming
            else grpc.stream_unary_rpc_method_handler
        )
        return rebuild(
            passing(behaviour, enter, takes_stream=handler.request_streaming),
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )

    def _replying(self, behaviour: Behaviour, enter: Enter, *, takes_stream: bool) -> Behaviour:
        def reply(messages: Iterator[Any], context: grpc.ServicerContext) -> Any:
            slot, shift = enter(context)
            with slot:
                request = self._request(messages, context, takes_stream=takes_stream)
                with shift.working():
                    return behaviour(request, context)

        return reply

    def _streaming(self, behaviour: Behaviour, enter: Enter, *, takes_stream: bool) -> Behaviour:
        makes_pieces = isgeneratorfunction(behaviour)  # others make all of their result at once

        def stream(messages: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
            slot, shift = enter(context)
            with slot:
                request = self._request(messages, context, takes_stream=takes_stream)
                if makes_pieces:
                    pieces = shift.pieces(behaviour(request, context))
                else:
                    with shift.working():
                        pieces = iter(behaviour(request, context))
                yield from self._slow_clients.sending(pieces, context)

        return stream

    def _request(
        self, messages: Iterator[Any], context: grpc.ServicerContext, *, takes_stream: bool
    ) -> Any:
        """The method's request: the stream of messages, or the only message."""
        patient = self._slow_clients.reading(messages, context)
        if takes_stream:
            return patient
        request = next(patient, None)
        if request is None:
            raise InvalidRequest("The call ended before its message arrived.")
        return request

    def _welcome(self, method: str) -> Enter:
        """A slot for a call that needs no credential.

        Each service has slots of its own: calls that fill those of reflection do not affect health.
        """
        service = method.rpartition("/")[0]
        places = self._respondents if method.startswith(RESPONDENTS) else self._open_places

        def enter(context: grpc.ServicerContext) -> Admitted:
            shift = Shift(self._share, service, self._times, lambda: not context.is_active())
            return Admitted(places.taken_by(service), shift)

        return enter

    def _admission(self, method: str) -> Enter:
        may_call, is_job = MAY_CALL.get(method, frozenset()), method in JOBS

        def enter(context: grpc.ServicerContext) -> Admitted:
            caller = self._caller(method, context)
            if caller.role not in may_call:
                raise NotAllowed(
                    f"The role {caller.role} may not call {method.rpartition('/')[2]}.",
                    hint="Ask the server's owner for a credential with another role.",
                )
            note_caller(context, caller)
            analyst = caller.payer.analyst
            shift = Shift(self._share, analyst, self._times, lambda: not context.is_active())
            if is_job:
                shift.take_longer()
            return Admitted(self._places.taken_by(analyst), shift)

        return enter

    def _caller(self, method: str, context: grpc.ServicerContext) -> Caller:
        try:
            presented = presented_by(context, may_be_basic=method == HANDSHAKE)
        except Malformed:
            found: Caller | RejectionReason = RejectionReason.MALFORMED
        else:
            found = self._authenticator.identify(presented)
        if isinstance(found, RejectionReason):
            self._failures.note(found)
            raise NotAuthenticated(
                "This call presents no credential that is in force here.",
                hint="Send `authorization: Bearer TOKEN` with a token from the server's owner.",
            )
        return found


class FailureLog:
    """Logs rejected credentials, one line a second at most, so that strangers cannot fill the disk.

    The metrics count how many there were.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logged = -LOG_SECONDS

    def note(self, doubt: RejectionReason) -> None:
        """Record one more rejected call."""
        now = time.monotonic()
        with self._lock:
            if now - self._logged < LOG_SECONDS:
                return
            self._logged = now
        write_log(logging.WARNING, "authentication_failed", code=doubt.value)


def _behaviour(handler: Any) -> Behaviour:
    """The method's function, whichever of the four kinds it is."""
    kinds: tuple[Behaviour | None, ...] = (
        handler.unary_unary,
        handler.unary_stream,
        handler.stream_unary,
        handler.stream_stream,
    )
    return next(kind for kind in kinds if kind is not None)
