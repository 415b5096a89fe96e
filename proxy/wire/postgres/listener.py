"""The listener of the PostgreSQL wire: accepts connections, and bounds how many there are.

A connection that is not logged in yet counts against narrower limits than one that is, so that
strangers cannot keep others out for longer than a login may take.
"""

import hmac
import itertools
import secrets
import socket
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from cube.refusals import ConfigurationInvalid
from proxy.scheduling import CallSlots
from proxy.shared.address import host_of
from proxy.wire.postgres import backend
from proxy.wire.postgres.connection import Connection, House
from proxy.wire.postgres.frontend import CancelRequest
from proxy.wire.postgres.sqlstates import FATAL, fields
from proxy.wire.postgres.transport import Transport
from proxy.workers import ALONE, Crew

BACKLOG: Final = 128
SECONDS_UNTIL_NEXT: Final = 0.05  # after a connection that could not be accepted
CANCEL: Final = "cancel"  # what workers ask each other
_PROCESS_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections there may be.

    Parameters
    ----------
    of_one_address : int
        BI tools connect from one address, for everybody.
    new_in_all, new_of_one_address : int
        That are not logged in yet.
    """

    in_all: int = 512
    of_one_analyst: int = 256
    of_one_address: int = 384
    new_in_all: int = 128
    new_of_one_address: int = 64


DEFAULT_LIMITS: Final = ConnectionLimits()


class _Count:
    """How many connections there are, in all and by address."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._every: Counter[str] = Counter()
        self._new: Counter[str] = Counter()

    def begin(self, address: str) -> bool:
        """Count one more; False if it is one too many."""
        limits = self._limits
        with self._lock:
            is_full = (
                self._every.total() >= limits.in_all
                or self._new.total() >= limits.new_in_all
                or self._every[address] >= limits.of_one_address
                or self._new[address] >= limits.new_of_one_address
            )
            if not is_full:
                self._every[address] += 1
                self._new[address] += 1
            return not is_full

    def logged_in(self, address: str) -> None:
        """One of them is not new any more."""
        with self._lock:
            _take(self._new, address)

    def end(self, address: str, *, is_new: bool) -> None:
        """One of them is over."""
        with self._lock:
            _take(self._every, address)
            if is_new:
                _take(self._new, address)


def _take(count: Counter[str], address: str) -> None:
    count[address] -= 1
    if not count[address]:
        del count[address]


class PostgresListener:
    """Serves an engine to PostgreSQL's clients.

    Parameters
    ----------
    house : House
        What its connections share.
    listen : str
        ``host:port``; port 0 takes any free one.
    crew : Crew
        The processes that share the port, if this is one of several workers. A client that wants a
        statement cancelled may reach any of them; the number of its connection says whose it is.

    Raises
    ------
    ConfigurationInvalid
        If the address is not available.
    """

    def __init__(
        self,
        house: House,
        listen: str,
        limits: ConnectionLimits = DEFAULT_LIMITS,
        crew: Crew = ALONE,
    ) -> None:
        self._house = house
        self._crew = crew
        self.places = CallSlots(limits.of_one_analyst)
        self._socket = _bound(listen, is_shared=not crew.seat.is_alone)
        self._count = _Count(limits)
        self._lock = threading.Lock()
        self._served: dict[int, _Served] = {}
        n_places, place = crew.seat.n_places, crew.seat.place
        first = (secrets.randbelow(2**20) + 1) * n_places + place
        self._processes = itertools.cycle(range(first, _PROCESS_MAX, n_places))
        self._is_stopped = False
        self._thread = threading.Thread(target=self._accept, name="tacit-postgres", daemon=True)
        port = self._socket.getsockname()[1]
        self.address = f"{listen.rpartition(':')[0]}:{port}"
        crew.answer(CANCEL, self._cancel_here)

    def start(self) -> None:
        """Begin to accept connections."""
        self._thread.start()

    def stop(self, grace_seconds: float = 0.0) -> None:
        """Accept no more, give statements in flight some time, and end every connection."""
        self._is_stopped = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._socket.close()
        self._thread.join()
        with self._lock:
            served = list(self._served.values())
        for one in served:
            one.connection.shut()
        until = time.monotonic() + grace_seconds
        for one in served:
            one.thread.join(max(0.0, until - time.monotonic()))

    def _accept(self) -> None:
        while not self._is_stopped:
            try:
                connection, peer = self._socket.accept()
            except OSError:  # too many files are open, unless this is the end
                time.sleep(SECONDS_UNTIL_NEXT)
                continue
            address = str(peer[0])
            if not self._count.begin(address):
                _turn_away(connection)
                continue
            try:
                self._begin(connection, address)
            except (OSError, RuntimeError):  # it is over already, or there is no thread for it
                connection.close()
                self._count.end(address, is_new=True)

    def _begin(self, connection: socket.socket, address: str) -> None:
        """Serve a connection in a thread of its own; OSError or RuntimeError if that cannot be."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        with self._lock:
            process = next(number for number in self._processes if number not in self._served)
            client = Connection(
                Transport(connection), self._house, self, process, secrets.randbits(32)
            )
            thread = threading.Thread(
                target=self._serve, args=(process,), name="tacit-postgres-client", daemon=True
            )
            self._served[process] = _Served(client, thread, address)
        try:
            thread.start()
        except RuntimeError:
            with self._lock:
                del self._served[process]
            raise

    def _serve(self, process: int) -> None:
        served = self._served[process]
        try:
            served.connection.serve()
        finally:
            with self._lock:
                del self._served[process]
            self._count.end(served.address, is_new=served.is_new)

    def note_login(self, process: int) -> None:
        """A connection is logged in, and counts against the wider limits alone."""
        served = self._served[process]
        served.is_new = False
        self._count.logged_in(served.address)

    def cancel(self, request: CancelRequest) -> None:
        """Stop a connection's statement if the key is right, without telling whether it was."""
        place = request.process % self._crew.seat.n_places
        if place == self._crew.seat.place:
            self._cancel_here(request)
        else:
            self._crew.ask(place, CANCEL, request)

    def _cancel_here(self, request: CancelRequest) -> None:
        with self._lock:
            found = self._served.get(request.process)
        if found is not None and _is_same(found.connection.key, request.key):
            found.connection.cancel()


@dataclass(slots=True)
class _Served:
    """A connection, the thread that serves it, and whether it is not logged in yet."""

    connection: Connection
    thread: threading.Thread
    address: str
    is_new: bool = True


def _is_same(key: int, shown: int) -> bool:
    return hmac.compare_digest(key.to_bytes(4), shown.to_bytes(4))


def _bound(listen: str, *, is_shared: bool) -> socket.socket:
    host, port = host_of(listen), int(listen.rpartition(":")[2])
    family = socket.AF_INET6 if ":" in (host or "") else socket.AF_INET
    try:
        return socket.create_server(
            (host or "", port), family=family, backlog=BACKLOG, reuse_port=is_shared
        )
    except (OSError, OverflowError):
        raise ConfigurationInvalid(
            f"The server cannot listen on {listen}.",
            hint="Is another process using the port?",
        ) from None


def _turn_away(connection: socket.socket) -> None:
    """Say why, without waiting for the client."""
    text = "Too many connections are open."
    with suppress(OSError), connection:
        connection.setblocking(False)
        connection.send(backend.error(fields(FATAL, "53300", text)))
