"""One client from its first byte to its last, in a thread of its own: its messages, and answers.

The simple protocol carries a text of statements out; the extended one prepares, binds, describes
and executes. Describing is free; a charge is made by the execution that first runs a portal, and by
no later one. After an error, messages up to the next Sync are passed over, as PostgreSQL does.

Whatever goes wrong otherwise ends this connection and no other. A client hears of it in an error
message; of an unexpected error, only its number.
"""

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from cube.refusals import Refused, TooSlow
from planner.sql import CopyFormat, CopyOut, read_text
from proxy.api import Caller, QueryEngine
from proxy.identity import RejectionReason, login_failed
from proxy.monitoring import INTERNAL_CODE, OK_CODE, POSTGRES_METHOD, Stage, Watcher
from proxy.scheduling import CallSlots, CallTimes, FairShare, Shift
from proxy.wire.errors import incident_text, log_request, note_incident
from proxy.wire.postgres import backend, frontend
from proxy.wire.postgres.bound_values import bound
from proxy.wire.postgres.client_settings import REPORTED, default, milliseconds, reading_of
from proxy.wire.postgres.frontend import CancelRequest
from proxy.wire.postgres.login import (
    LOGIN_SECONDS,
    Door,
    LoggedIn,
    first_request,
    log_in,
    welcome,
)
from proxy.wire.postgres.pg_types import BY_OID, UNKNOWN, PgType
from proxy.wire.postgres.portals import Portal, columns_of
from proxy.wire.postgres.session import SELECT_TAG, Session
from proxy.wire.postgres.sqlstates import (
    CANCELLED,
    ERROR,
    FATAL,
    INTERNAL,
    StateError,
    fields,
    place_in,
    refusal_fields,
)
from proxy.wire.postgres.transport import ConnectionEnded, Transport
from proxy.wire.postgres.values import stream

SECONDS_TO_SEND_MAX: Final = 30.0  # from a message's first byte to its last
_ALL: Final = 2**62
_COUNTED: Final = frozenset({"Query", "Execute"})  # of messages that went well
_UNSAID: Final = frozenset({0, UNKNOWN.oid})


class Conversation:
    """Answers the messages of one client. For one thread.

    Parameters
    ----------
    was_cancelled : callable
        Whether the client asked to stop what runs; it is asked once a statement was stopped.
    caller : Caller
        Who logged in, for the log.
    """

    def __init__(
        self,
        transport: Transport,
        session: Session,
        watcher: Watcher,
        was_cancelled: Callable[[], bool],
        caller: Caller,
    ) -> None:
        self._transport = transport
        self._session = session
        self._watcher = watcher
        self._was_cancelled = was_cancelled
        self._who = caller
        self._is_passing_over = False
        self._asked = _Asked("")
        self._reported = session.transaction.settings

    def run(self, until: float | None) -> None:
        """Answer messages until the client says goodbye or is gone.

        Parameters
        ----------
        until : float, optional
            The time on the monotonic clock from which no message is waited for.
        """
        self._ready()
        while True:
            message = self._next(until)
            match message:
                case frontend.Terminate():
                    return
                case frontend.Sync():
                    self._is_passing_over = False
                    self._session.end_of_sequence()
                    self._ready()
                case frontend.Flush():
                    self._transport.flush()
                case frontend.SimpleQuery(sql):
                    self._is_passing_over = False
                    self._simple(sql)
                    self._ready()
                case _ if not self._is_passing_over:
                    self._extended(message)
                case _:
                    pass

    def _next(self, until: float | None) -> frontend.Message | None:
        """The next message; None for one in an encoding that cannot be read, which is refused."""
        (tag,) = self._transport.receive(1, until)
        until = time.monotonic() + SECONDS_TO_SEND_MAX
        header = self._transport.receive(4, until)
        length = frontend.message_length(tag, header, is_logged_in=True)
        body = self._transport.receive(length, until)
        try:
            return frontend.message(tag, body)
        except frontend.NotUtf8 as refusal:
            self._refuse(refusal)
            if tag == ord("Q"):
                self._ready()
            else:
                self._is_passing_over = True
            return None

    def _ready(self) -> None:
        self._transport.send(backend.ready(self._session.transaction.standing))
        self._transport.flush()

    def _simple(self, sql: str) -> None:
        """Carry out a text of statements; an error ends it."""

        def carry_out() -> None:
            found = read_text(sql)
            if not found:
                self._transport.send(backend.EMPTY_QUERY)
                return
            starts = [one.start for one in found]
            for start, end in zip(starts, [*starts[1:], len(sql)], strict=True):
                self._asked = _Asked(sql[start:end], start)
                self._one(self._asked.text)

        self._guarded("Query", carry_out, _Asked(sql))

    def _one(self, sql: str) -> None:
        """Carry out one statement of the simple protocol."""
        portal = Portal(self._session.read(sql))
        self._session.run(portal)
        is_stream = isinstance(portal.prepared.statement, CopyOut)
        if portal.schema is not None and not is_stream:
            self._transport.send(backend.row_description(portal.columns))
        self._give(portal, _ALL)

    def _extended(self, message: frontend.Message | None) -> None:
        """Answer a message of the extended protocol."""
        match message:
            case None | frontend.CopyMessage():
                return
            case frontend.Parse():
                done = self._guarded("Parse", partial(self._parse, message), _Asked(message.sql))
            case frontend.Bind():
                done = self._guarded("Bind", partial(self._bind, message))
            case frontend.Describe():
                done = self._guarded("Describe", partial(self._describe, message))
            case frontend.Execute():
                done = self._guarded("Execute", partial(self._execute, message))
            case frontend.Close():
                done = self._guarded("Close", partial(self._close, message))
            case _:
                raise frontend.ProtocolViolation("This message may not come now.")
        self._is_passing_over = not done

    def _parse(self, parse: frontend.Parse) -> None:
        types = tuple(None if oid in _UNSAID else _type(oid) for oid in parse.types)
        prepared = self._session.prepare(parse.sql, types)
        self._session.prepared.put(parse.name, prepared, len(parse.sql))
        self._transport.send(backend.PARSE_COMPLETE)

    def _bind(self, bind: frontend.Bind) -> None:
        prepared = self._session.prepared.get(bind.statement)
        self._asked = _Asked(prepared.sql)
        reading = reading_of(self._session.transaction.settings.client)
        values = bound(
            bind.values, bind.formats, prepared.types, prepared.names, prepared.places, reading
        )
        portal = Portal(prepared, values, bind.result_formats)
        _ = portal.columns  # refuses formats that do not fit
        n_bytes = sum(len(value) for value in bind.values if value is not None)
        self._session.portals.put(bind.portal, portal, n_bytes)
        self._transport.send(backend.BIND_COMPLETE)

    def _describe(self, describe: frontend.Describe) -> None:
        if describe.is_portal:
            portal = self._session.portals.get(describe.name)
            self._session.describe(portal)
            columns = portal.columns
        else:
            prepared = self._session.prepared.get(describe.name)
            columns = () if prepared.schema is None else columns_of(prepared.schema)
            self._transport.send(backend.parameter_description(prepared.types))
        self._transport.send(backend.row_description(columns) if columns else backend.NO_DATA)

    def _execute(self, execute: frontend.Execute) -> None:
        portal = self._session.portals.get(execute.portal)
        self._asked = _Asked(portal.prepared.sql)
        if portal.prepared.statement is None:
            self._transport.send(backend.EMPTY_QUERY)
            return
        if not portal.has_run:
            self._session.run(portal)
        self._give(portal, execute.n_rows_max or _ALL)

    def _close(self, close: frontend.Close) -> None:
        shelf = self._session.portals if close.is_portal else self._session.prepared
        shelf.discard(close.name)
        self._transport.send(backend.CLOSE_COMPLETE)

    def _give(self, portal: Portal, n_rows: int) -> None:
        """Send the next rows of a portal, and how it stands then."""
        self._tell()
        if isinstance(portal.prepared.statement, CopyOut):
            self._stream(portal, portal.prepared.statement)
            return
        n_sent = 0
        for row in portal.next_rows(n_rows):
            self._transport.send(backend.data_row(row))
            n_sent += 1
        if portal.n_left:
            self._transport.send(backend.PORTAL_SUSPENDED)
            return
        tag = f"{portal.tag} {n_sent}" if portal.tag == SELECT_TAG else portal.tag
        self._transport.send(backend.command_complete(tag))

    def _stream(self, portal: Portal, asked: CopyOut) -> None:
        """Send the answer of a COPY."""
        columns, is_binary = portal.columns, asked.format is CopyFormat.BINARY
        self._transport.send(backend.copy_out(len(columns), is_binary=is_binary))
        for piece in stream(portal.passed(portal.n_left), columns, asked, portal.style):
            self._transport.send(backend.copy_data(piece))
        self._transport.send(backend.COPY_DONE)
        self._transport.send(backend.command_complete(portal.tag))

    def _tell(self) -> None:
        """Send notices, and settings that changed."""
        notices, self._session.notices = self._session.notices, []
        for severity, sqlstate, text in notices:
            self._transport.send(backend.notice(fields(severity, sqlstate, text)))
        settings = self._session.transaction.settings
        if settings is not self._reported:
            before, now = dict(self._reported.client), dict(settings.client)
            self._reported = settings
            for name, shown in REPORTED.items():
                value = now.get(name, default(name))
                if value != before.get(name, default(name)):
                    self._transport.send(backend.parameter_status(shown, value))

    def _guarded(
        self, method: str, work: Callable[[], None], asked: "_Asked | None" = None
    ) -> bool:
        """Do the work for a message; whether it was done. An error is sent, and ends nothing."""
        self._asked = _Asked("") if asked is None else asked
        started, code = time.monotonic(), OK_CODE
        try:
            with self._watcher.stage(Stage.WIRE):
                work()
        except ConnectionEnded:
            raise
        except Refused as refusal:
            code = refusal.code
            self._refuse(self._of_a_cancel(refusal))
        except BaseException as error:  # noqa: BLE001 - native code may raise beyond Exception
            code = INTERNAL_CODE
            self._watcher.incident()
            text = incident_text(note_incident(error, POSTGRES_METHOD + method))
            self._send_error(fields(ERROR, INTERNAL, text))
        if code != OK_CODE or method in _COUNTED:
            self._watcher.called(POSTGRES_METHOD + method, code)
            seconds = time.monotonic() - started
            epsilon = float(self._session.taken_epsilon())
            log_request(POSTGRES_METHOD + method, code, seconds, epsilon=epsilon, caller=self._who)
        return code == OK_CODE

    def _of_a_cancel(self, refusal: Refused) -> Refused:
        """The refusal, or that the client stopped the statement."""
        if isinstance(refusal, TooSlow) and self._was_cancelled():
            return StateError(CANCELLED, "The statement was cancelled, as the client asked.")
        return refusal

    def _refuse(self, refusal: Refused) -> None:
        asked = self._asked
        found = list(refusal_fields(refusal))
        if refusal.position is not None and asked.text:
            place = place_in(asked.text, refusal.position)
            found += [] if place is None else [("P", str(place + asked.start))]
        self._send_error(found)

    def _send_error(self, found: Iterable[tuple[str, str]]) -> None:
        self._session.transaction.fail()
        self._tell()
        self._transport.send(backend.error(found))


@dataclass(frozen=True, slots=True)
class _Asked:
    """The statement that an error is about, and where it begins in the client's text."""

    text: str
    start: int = 0


def _type(oid: int) -> PgType:
    found = BY_OID.get(oid)
    if found is None:
        raise StateError(
            "42804",
            f"A parameter cannot be of the type with number {oid}.",
            hint="Send numbers, texts, booleans, dates, times, timestamps, intervals, lists of "
            "them, and NULL.",
        )
    return found


CERTIFIED_SECONDS_MAX: Final = 86_400.0  # of a connection by certificate, as on the other wire


@dataclass(frozen=True, slots=True)
class House:
    """What all connections of one listener share.

    Parameters
    ----------
    share : FairShare
        Of the process, on every wire.
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
        """The share and the time of one statement, not cancelled yet."""
        self._cancelled.clear()
        times = self._house.times
        asked = dict(session.transaction.settings.client).get("statement_timeout", "0")
        seconds = milliseconds(asked) / 1000
        if seconds:
            times = CallTimes(min(times.statement, seconds), min(times.job, seconds))
        return Shift(self._house.share, analyst, times, self._is_gone)

    def _is_gone(self) -> bool:
        return self._cancelled.is_set() or self._transport.is_gone()
