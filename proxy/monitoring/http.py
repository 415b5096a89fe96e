"""The port for monitoring systems: `/metrics`, `/healthz` and `/readyz` over plain HTTP.

It listens on loopback only: the owner decides who else may see the metrics. The replies are public
by the rules of `proxy.monitoring.metrics`, and no text of a request is in any of them.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from http import HTTPStatus
from typing import Any, Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from prometheus_client import CollectorRegistry, make_wsgi_app

from proxy.monitoring.loopback_http import serving_http

N_REQUESTS_MAX: Final = 8  # at once: scrapers and probes are few


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


def serving_metrics(listen: str, pages: WSGIApplication) -> AbstractContextManager[str]:
    """Serve the pages; yields the address."""
    return serving_http(listen, pages, setting="metrics_listen", n_requests_max=N_REQUESTS_MAX)


def _page(start_response: StartResponse, status: HTTPStatus, text: str) -> list[bytes]:
    body = f"{text}\n".encode()
    headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
    start_response(f"{status.value} {status.phrase}", headers)
    return [body]
