"""The port for monitoring systems: `/metrics`, `/healthz` and `/readyz` over plain HTTP.

It listens on loopback only. A scraper on another machine goes through a reverse proxy of the
owner's, who then decides who may see the metrics. The replies are public by the rules of
`proxy.monitoring.metrics`; requests are not logged, and no text of a request is in any reply.
"""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from prometheus_client import CollectorRegistry, make_wsgi_app

from cube.refusals import ConfigurationInvalid
from proxy.config.address import host_of, is_loopback

N_REQUESTS_MAX: Final = 8  # at once: scrapers and probes are few
REQUEST_SECONDS_MAX: Final = 5.0  # to send a request, or to receive a reply


def application(registry: CollectorRegistry, is_ready: Callable[[], bool]) -> WSGIApplication:
    """The three pages as a WSGI application."""
    metrics: WSGIApplication = make_wsgi_app(registry)

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        if environ["REQUEST_METHOD"] != "GET":
            return _page(start_response, HTTPStatus.METHOD_NOT_ALLOWED, "only GET")
        match environ["PATH_INFO"]:
            case "/metrics":
                # The query string could only select metrics by name; it is ignored.
                return metrics({**environ, "QUERY_STRING": ""}, start_response)
            case "/healthz":
                return _page(start_response, HTTPStatus.OK, "alive")
            case "/readyz" if is_ready():
                return _page(start_response, HTTPStatus.OK, "ready")
            case "/readyz":
                return _page(start_response, HTTPStatus.SERVICE_UNAVAILABLE, "not ready")
            case _:
                return _page(start_response, HTTPStatus.NOT_FOUND, "no such page")

    return answer


@contextmanager
def serving_http(listen: str, app: WSGIApplication) -> Iterator[str]:
    """Serve an application; yields the address it is bound to.

    Parameters
    ----------
    listen : str
        ``host:port`` of loopback, with an IPv6 host in brackets; port 0 takes any free one.
    app : WSGIApplication

    Raises
    ------
    ConfigurationInvalid
        If the address is malformed, not loopback, or not available.
    """
    host = host_of(listen)
    if host is None or not is_loopback(host):
        raise ConfigurationInvalid(
            f"{listen!r} is not a loopback address.",
            hint="Write metrics_listen like 127.0.0.1:9464; to let other machines see the "
            "metrics, put a reverse proxy in front of it.",
        )
    kind = _Server6 if ":" in host else _Server
    try:
        server = kind((host, int(listen.rpartition(":")[2])), _Handler)
    except OSError:
        raise ConfigurationInvalid(
            f"The metrics cannot be served on {listen}.",
            hint="Is another process using the port?",
        ) from None
    server.set_app(app)
    with server:
        thread = threading.Thread(target=server.serve_forever, name="tacit-metrics", daemon=True)
        thread.start()
        try:
            yield f"{listen.rpartition(':')[0]}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _page(start_response: StartResponse, status: HTTPStatus, text: str) -> list[bytes]:
    body = f"{text}\n".encode()
    headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
    start_response(f"{status.value} {status.phrase}", headers)
    return [body]


class _Handler(WSGIRequestHandler):
    """One connection: one request, in limited time, without logging."""

    timeout = REQUEST_SECONDS_MAX
    server_version = "Tacit"
    sys_version = ""

    def send_error(
        self,
        code: int,
        message: str | None = None,  # noqa: ARG002 - it quotes the request
        explain: str | None = None,  # noqa: ARG002 - it may
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

    def __init__(self, *arguments: Any) -> None:
        self._places = threading.BoundedSemaphore(N_REQUESTS_MAX)
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
        """Answer, and free the slot."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore it: a disconnect is no event, and a traceback would show the request."""


class _Server6(_Server):
    address_family = socket.AF_INET6
