"""The bytes of one connection: reads that end in time, writes that do, and TLS in between.

Never more is read than the message at hand needs, so nothing that came in plain text can be taken
for a part of the messages under TLS. No message is understood here.
"""

import select
import socket
import ssl
import time
from typing import Final

from proxy.scheduling import SECONDS_TO_TAKE_MAX

FLUSH_BYTES: Final = 64 * 1024  # what waits before it is sent unasked
_CHUNK_BYTES: Final = 64 * 1024
_GONE: Final = select.POLLRDHUP | select.POLLHUP | select.POLLERR | select.POLLNVAL


class ConnectionEnded(Exception):
    """The client is gone, or too slow."""


class Transport:
    """One connection's socket. For one thread, but for `is_gone` and `shut`."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._tls: ssl.SSLSocket | None = None
        self._pending: list[bytes] = []
        self._n_pending = 0
        self._poll = select.poll()
        self._poll.register(connection.fileno(), select.POLLRDHUP)

    @property
    def is_under_tls(self) -> bool:
        """Whether TLS has begun."""
        return self._tls is not None

    @property
    def client_certificate(self) -> bytes | None:
        """The certificate that the client showed under TLS, as DER."""
        return None if self._tls is None else self._tls.getpeercert(binary_form=True)

    def receive(self, n_bytes: int, until: float | None) -> bytes:
        """Exactly so many bytes.

        Parameters
        ----------
        until : float, optional
            The time on the monotonic clock until which they must have come; None for ever.

        Raises
        ------
        ConnectionEnded
        """
        found = bytearray()
        try:
            while len(found) < n_bytes:
                self._socket.settimeout(None if until is None else _left(until))
                chunk = self._socket.recv(min(n_bytes - len(found), _CHUNK_BYTES))
                if not chunk:
                    raise ConnectionEnded
                found += chunk
        except OSError:  # a time-out is one
            raise ConnectionEnded from None
        return bytes(found)

    def send(self, message: bytes) -> None:
        """Send a message, or keep it until there is more to send."""
        self._pending.append(message)
        self._n_pending += len(message)
        if self._n_pending > FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Send everything that waits, within the time that a client has to take it."""
        waiting, self._pending, self._n_pending = b"".join(self._pending), [], 0
        try:
            self._socket.settimeout(SECONDS_TO_TAKE_MAX)
            self._socket.sendall(waiting)
        except OSError:
            raise ConnectionEnded from None

    def start_tls(self, context: ssl.SSLContext, until: float) -> None:
        """Go on under TLS; the handshake must be over in time."""
        try:
            self._socket.settimeout(_left(until))
            self._tls = context.wrap_socket(
                self._socket, server_side=True, do_handshake_on_connect=False
            )
            self._socket = self._tls
            self._tls.do_handshake()
        except (OSError, ValueError):
            raise ConnectionEnded from None

    def is_gone(self) -> bool:
        """Whether the client has hung up."""
        return any(event & _GONE for _, event in self._poll.poll(0))

    def shut(self) -> None:
        """End the connection from another thread; a thread that reads or writes notices."""
        try:
            # Not TLS's own way, after which the other thread would go on in plain text.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        except OSError:  # it is over already
            return

    def close(self) -> None:
        """End the connection."""
        self._socket.close()


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise ConnectionEnded
    return left
