"""Plain HTTP on loopback: a few requests at once, each in limited time, none of them logged.

What other machines may see of it goes through a reverse proxy of the owner's. No text of a request
is in a reply of this module's own, nor anywhere else; applications are WSGI, and say the rest.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import WSGIApplication

from cube.refusals import ConfigurationInvalid
from proxy.shared.address import host_of, is_loopback

SILENT_SECONDS_MAX: Final = 5.0  # of a peer that sends nothing, or takes nothing
REQUEST_SECONDS_MAX: Final = 20.0  # of one request, however it dribbles in


@contextmanager
def serving_http(
    listen: str, app: WSGIApplication, *, setting: str, n_requests_max: int
) -> Iterator[str]:
    """Serve an application; yields the address it is bound to.

    Parameters
    ----------
    listen : str
        ``host:port`` of loopback, with an IPv6 host in brackets; port 0 takes any free one.
    setting : str
        The key under `[server]` that says so, for what an owner reads.
    n_requests_max : int
        At once; more are turned away.

    Raises
    ------
    ConfigurationInvalid
        If the address is malformed, not loopback, or not available.
    """
    host = host_of(listen)
    if host is None or not is_loopback(host):
        raise ConfigurationInvalid(
            f"{listen!r} is not a loopback address.",
            hint=f"Write {setting} like 127.0.0.1:9464; to let other machines reach it, "
            "put a reverse proxy in front of it.",
        )
    kind = _Server6 if ":" in host else _Server
    try:
        server = kind(n_requests_max, (host, int(listen.rpartition(":")[2])), _Handler)
    except OSError:
        raise ConfigurationInvalid(
            f"HTTP cannot be served on {listen}.",
            hint=f"Is another process using the port of {setting}?",
        ) from None
    server.set_app(app)
    with server:
        thread = threading.Thread(target=server.serve_forever, name="tacit-http", daemon=True)
        thread.start()
        try:
            yield f"{listen.rpartition(':')[0]}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _Handler(WSGIRequestHandler):
    """One connection: one request, in limited time, without logging."""

    timeout = SILENT_SECONDS_MAX
    wbufsize = -1  # a short reply is sent in one piece, and not cut off behind its first line
    server_version = "Tacit"
    sys_version = ""

    def send_error(
        self,
        code: int,
        message: str | None = None,  # noqa: ARG002 - it quotes the request
        explain: str | None = None,  # noqa: ARG002 - it may quote it
    ) -> None:
        """Reply to a malformed request with the status and the library's phrase for it."""
        super().send_error(code)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's signature
        """Log nothing: a request line may contain anything."""

    def address_string(self) -> str:
        """The peer's address, without a DNS lookup."""
        return str(self.client_address[0])


class _Server(ThreadingMixIn, WSGIServer):
    """A thread for each of a few connections; more are turned away."""

    daemon_threads = True
    allow_reuse_port = False
    request_queue_size = 128  # to be accepted; whom the system turns away tries after a second

    def __init__(self, n_requests_max: int, *arguments: Any) -> None:
        self._places = threading.BoundedSemaphore(n_requests_max)
        super().__init__(*arguments)

    def server_bind(self) -> None:
        """Bind, without a DNS lookup of the host's full name."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own, if there is a free slot."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could be started
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, in limited time, and free the slot."""
        too_long = threading.Timer(REQUEST_SECONDS_MAX, _hang_up, (request,))
        too_long.daemon = True
        too_long.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            too_long.cancel()
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore it: a disconnect is no event, and a traceback would show the request."""


class _Server6(_Server):
    address_family = socket.AF_INET6


def _hang_up(request: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it is over already
        request.shutdown(socket.SHUT_RDWR)
