"""One client from its first byte to its last, in a thread of its own.

Whatever goes wrong ends this connection and no other. A client hears of it in an error message; of
an unexpected error, only its number.
"""

import threading
import time
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Final, Protocol

from cube.refusals import Refused
from proxy.api.requests import Caller, QueryEngine
from proxy.identity.authenticate import RejectionReason
from proxy.identity.scram import login_failed
from proxy.monitoring.events import INTERNAL_CODE, OK_CODE, POSTGRES_METHOD, Watcher
from proxy.scheduling.fair_share import CallTimes, FairShare, Shift
from proxy.scheduling.slow_clients import CallSlots
from proxy.wire.incidents import incident_text, note_incident
from proxy.wire.postgres import backend
from proxy.wire.postgres.client_settings import milliseconds
from proxy.wire.postgres.conversation import Conversation
from proxy.wire.postgres.frontend import CancelRequest
from proxy.wire.postgres.login import (
    LOGIN_SECONDS,
    Door,
    LoggedIn,
    first_request,
    log_in,
    welcome,
)
from proxy.wire.postgres.session import Session
from proxy.wire.postgres.sqlstates import FATAL, INTERNAL, fields, refusal_fields
from proxy.wire.postgres.transport import ConnectionEnded, Transport

CERTIFIED_SECONDS_MAX: Final = 86_400.0  # of a connection by certificate, as on the other wire


@dataclass(frozen=True, slots=True)
class House:
    """What all connections of one listener share.

    Parameters
    ----------
    engine : QueryEngine
    door : Door
    share : FairShare
        Of the process, on every wire.
    watcher : Watcher
    times : CallTimes
    """

    engine: QueryEngine
    door: Door
    share: FairShare
    watcher: Watcher
    times: CallTimes


class Host(Protocol):
    """The listener, as its connections see it."""

    @property
    def places(self) -> CallSlots:
        """Connections of one analyst."""
        ...

    def note_login(self, process: int) -> None:
        """A connection is logged in."""
        ...

    def cancel(self, request: CancelRequest) -> None:
        """Stop what a connection does, if the key is right."""
        ...


class Connection:
    """One client.

    Parameters
    ----------
    transport : Transport
    house : House
    host : Host
    process, key : int
        By which it can be cancelled.
    """

    def __init__(
        self,
        transport: Transport,
        house: House,
        host: Host,
        process: int,
        key: int,
    ) -> None:
        self._transport = transport
        self._house = house
        self._host = host
        self._process = process
        self._cancelled = threading.Event()
        self.key = key

    def serve(self) -> None:
        """Serve the client until the end."""
        try:
            with suppress(ConnectionEnded):
                self._guarded()
        finally:
            self._transport.close()

    def cancel(self) -> None:
        """Stop the statement that runs, if one does. For another thread."""
        self._cancelled.set()

    def shut(self) -> None:
        """End the connection. For another thread."""
        self._transport.shut()

    def _guarded(self) -> None:
        """Serve; an error that ends the connection is told."""
        try:
            self._admitted()
        except ConnectionEnded:
            raise
        except Refused as refusal:
            self._house.watcher.called(POSTGRES_METHOD + "Login", refusal.code)
            found = list(refusal_fields(refusal, FATAL))
        except BaseException as error:  # noqa: BLE001 - native code may raise beyond Exception
            self._house.watcher.called(POSTGRES_METHOD + "Login", INTERNAL_CODE)
            self._house.watcher.incident()
            text = incident_text(note_incident(error, POSTGRES_METHOD + "Login"))
            found = list(fields(FATAL, INTERNAL, text))
        else:
            return
        self._transport.send(backend.error(found))
        self._transport.flush()

    def _admitted(self) -> None:
        """Let the client in, and answer it."""
        until = time.monotonic() + LOGIN_SECONDS
        request = first_request(self._transport, self._house.door, until)
        if isinstance(request, CancelRequest):
            self._host.cancel(request)
            return
        who = log_in(self._transport, self._house.door, request, until)
        with self._host.places.taken_by(who.caller.payer.analyst):
            self._host.note_login(self._process)
            self._house.watcher.called(POSTGRES_METHOD + "Login", OK_CODE)
            welcome(self._transport, who.caller, who.settings)
            self._transport.send(backend.backend_key(self._process, self.key))
            self._converse(who)

    def _converse(self, who: LoggedIn) -> None:
        def caller() -> Caller:
            found = self._house.door.authenticator.identify(who.presented)
            if isinstance(found, RejectionReason):
                raise login_failed()
            return found

        def working() -> AbstractContextManager[object]:
            return self._shift(who.caller.payer.analyst, session).working()

        session = Session(self._house.engine, caller, working, who.settings)
        conversation = Conversation(
            self._transport, session, self._house.watcher, self._cancelled.is_set, who.caller
        )
        # TLS looks at a certificate, and at when it ends, once.
        by_certificate = who.presented.certificate is not None
        conversation.run(time.monotonic() + CERTIFIED_SECONDS_MAX if by_certificate else None)

    def _shift(self, analyst: str, session: Session) -> Shift:
        """The share and the time of one statement, which nobody has cancelled yet."""
        self._cancelled.clear()
        times = self._house.times
        asked = dict(session.transaction.settings.client).get("statement_timeout", "0")
        seconds = milliseconds(asked) / 1000
        if seconds:
            times = CallTimes(min(times.statement, seconds), min(times.job, seconds))
        return Shift(self._house.share, analyst, times, self._is_gone)

    def _is_gone(self) -> bool:
        return self._cancelled.is_set() or self._transport.is_gone()
