"""The door: every call passes it before a byte of its request is read.

It finds out who calls, whether their role may call this method, and whether they have a place left;
then the method runs as it would without a door, for its fair share of the process and no longer
than it may. Health and reflection are open to everybody.

Methods that take one message are served as ones that take a stream of one: gRPC would wait for that
message first, with a thread for each call, whoever made it.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import grpc

from cube.refusals import InvalidRequest, NotAllowed, NotAuthenticated
from proxy.api.requests import Caller
from proxy.identity.authenticate import Authenticator, RejectionReason
from proxy.identity.call_context import note_caller
from proxy.identity.presented import Malformed, shown_by
from proxy.identity.roles import HANDSHAKE, JOBS, MAY_CALL, OPEN_SERVICES
from proxy.monitoring.logs import write_log
from proxy.scheduling.fair_share import DEFAULT_TIMES, CallTimes, FairShare, Shift
from proxy.scheduling.slow_clients import CallSlots, SlowClientGuard

N_CALLS_OF_ONE_MAX: Final = 40  # fewer than there are threads: one caller leaves room for others
N_OPEN_CALLS_MAX: Final = 8  # of services that ask for no credential
LOG_SECONDS: Final = 1.0  # between two lines about refused credentials

Behaviour = Callable[[Any, grpc.ServicerContext], Any]
Enter = Callable[[grpc.ServicerContext], AbstractContextManager[Shift]]


class IdentityInterceptor(grpc.ServerInterceptor):
    """Lets calls in.

    Parameters
    ----------
    access : Authenticator
        Knows who calls.
    patience : SlowClientGuard
        With those who are slow.
    times : CallTimes
        That the work for a call may take.
    """

    def __init__(
        self, access: Authenticator, patience: SlowClientGuard, times: CallTimes = DEFAULT_TIMES
    ) -> None:
        self._access = access
        self._patience = patience
        self._times = times
        self._share = FairShare()
        self._failures = FailureLog()
        self._places = CallSlots(N_CALLS_OF_ONE_MAX)
        self._open_places = CallSlots(N_OPEN_CALLS_MAX)

    # The handler's message types vary by method, so the signature is only as precise as Any.
    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Any],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """The method's handler behind the door; None if there is no such method."""
        handler = continuation(handler_call_details)
        if handler is None:
            return None
        method = handler_call_details.method
        behaviour = _behaviour(handler)
        if getattr(behaviour, "experimental_non_blocking", False):
            return None  # health's Watch: a stream without end, for anybody, by the hundred
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
            with enter(context) as shift:
                request = self._request(messages, context, takes_stream=takes_stream)
                with shift.working():
                    return behaviour(request, context)

        return reply

    def _streaming(self, behaviour: Behaviour, enter: Enter, *, takes_stream: bool) -> Behaviour:
        def stream(messages: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
            with enter(context) as shift:
                request = self._request(messages, context, takes_stream=takes_stream)
                pieces = shift.pieces(iter(behaviour(request, context)))
                yield from self._patience.sending(pieces, context)

        return stream

    def _request(
        self, messages: Iterator[Any], context: grpc.ServicerContext, *, takes_stream: bool
    ) -> Any:
        """What the method takes: the messages, or the only one."""
        patient = self._patience.reading(messages, context)
        if takes_stream:
            return patient
        request = next(patient, None)
        if request is None:
            raise InvalidRequest("The call ended before its message came.")
        return request

    def _welcome(self, method: str) -> Enter:
        """A place among the calls that nobody needs to answer for.

        Each service has places of its own: whoever fills those of reflection leaves health alone.
        """
        service = method.rpartition("/")[0]

        @contextmanager
        def enter(context: grpc.ServicerContext) -> Iterator[Shift]:
            with self._open_places.taken_by(service):
                yield Shift(self._share, service, self._times, lambda: not context.is_active())

        return enter

    def _admission(self, method: str) -> Enter:
        @contextmanager
        def enter(context: grpc.ServicerContext) -> Iterator[Shift]:
            caller = self._caller(method, context)
            if caller.role not in MAY_CALL.get(method, frozenset()):
                raise NotAllowed(
                    f"{method.rpartition('/')[2]} is not for the role {caller.role}.",
                    hint="Ask the server's owner for a credential with another role.",
                )
            note_caller(context, caller)
            analyst = caller.payer.analyst
            with self._places.taken_by(analyst):
                shift = Shift(self._share, analyst, self._times, lambda: not context.is_active())
                if method in JOBS:
                    shift.take_longer()
                yield shift

        return enter

    def _caller(self, method: str, context: grpc.ServicerContext) -> Caller:
        try:
            shown = shown_by(context, may_be_basic=method == HANDSHAKE)
        except Malformed:
            found: Caller | RejectionReason = RejectionReason.MALFORMED
        else:
            found = self._access.identify(shown)
        if isinstance(found, RejectionReason):
            self._failures.note(found)
            raise NotAuthenticated(
                "This call shows no credential that is in force here.",
                hint="Send `authorization: Bearer TOKEN` with a token from the server's owner.",
            )
        return found


class FailureLog:
    """Logs refused credentials, a line a second at most, so that nobody can fill a disk with them.

    How many there were is what the metrics count.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logged = -LOG_SECONDS

    def note(self, doubt: RejectionReason) -> None:
        """One more call that was nobody's."""
        now = time.monotonic()
        with self._lock:
            if now - self._logged < LOG_SECONDS:
                return
            self._logged = now
        write_log(logging.WARNING, "authentication_failed", code=doubt.value)


def _behaviour(handler: Any) -> Behaviour:
    """The method itself, of whichever of the four kinds."""
    kinds: tuple[Behaviour | None, ...] = (
        handler.unary_unary,
        handler.unary_stream,
        handler.stream_unary,
        handler.stream_stream,
    )
    return next(kind for kind in kinds if kind is not None)
