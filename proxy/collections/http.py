"""The port for respondents in browsers: what they are asked, and their answers, over plain HTTP.

    GET  /collections/NAME/assignment   the campaign's text, byte by byte, if an answer would count
    GET  /collections/NAME/campaign     the same in any case: for who has an answer from before
    POST /collections/NAME/answers      {"counted_before": false}, once the answer is durable

A token comes as ``Authorization: Bearer TOKEN``. Pages of any origin may call: there are no cookies
nor credentials here that a page could misuse, and anybody with a token may answer from anywhere.
Refusals are ``{"code", "message", "hint"}``.

It listens on loopback only; a reverse proxy of the owner's adds TLS, and should not log addresses.
Nothing of a request is logged, and no address is looked at. The work for all respondents together,
over this port and over gRPC, is one share of the process: however many there are, analysts go on.
"""

import json
import re
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from http import HTTPStatus
from typing import Any, Final, Protocol
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import structlog

from cube.refusals import (
    InvalidRequest,
    NotAllowed,
    NotAuthenticated,
    Refused,
    StoreUnavailable,
    TooLarge,
    UnknownName,
)
from local_dp.submission import N_CHARACTERS_MAX
from proxy.collections.status import Assignment
from proxy.monitoring import serving_http
from proxy.scheduling import DEFAULT_TIMES, FairShare, Shift

N_REQUESTS_MAX: Final = 64  # at once: answers wait for one another's sync to the disk
BODY_SECONDS_MAX: Final = 10.0
ACCOUNT: Final = "/tacit.v1.Respondents"  # whose work it is; the same as over gRPC
PATH: Final = re.compile(
    r"/collections/(?P<name>.+)/(?P<what>assignment|campaign|answers)", re.DOTALL
)
METHODS: Final = {"assignment": "GET", "campaign": "GET", "answers": "POST"}
BEARER: Final = re.compile(r"Bearer +([0-9a-f]+)", re.ASCII | re.IGNORECASE)
STATUS: Final[Mapping[type[Refused], HTTPStatus]] = {
    InvalidRequest: HTTPStatus.BAD_REQUEST,
    NotAuthenticated: HTTPStatus.UNAUTHORIZED,
    NotAllowed: HTTPStatus.FORBIDDEN,
    UnknownName: HTTPStatus.NOT_FOUND,
    TooLarge: HTTPStatus.CONFLICT,
    StoreUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}
EVERYWHERE: Final = (
    ("Access-Control-Allow-Origin", "*"),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
)
PREFLIGHT: Final = (
    ("Access-Control-Allow-Methods", "GET, POST"),
    ("Access-Control-Allow-Headers", "authorization, content-type"),
    ("Access-Control-Max-Age", "86400"),
)


class Respondents(Protocol):
    """The part of the service that respondents call."""

    def assignment(self, name: str, token: str, *, is_for_kept: bool = False) -> Assignment:
        """What a respondent is asked, or was."""
        ...

    def submit(self, name: str, token: str, answer: str) -> bool:
        """Count an answer once for its token; False if one was counted before."""
        ...


def serving_respondents(
    listen: str, service: Respondents, share: FairShare
) -> AbstractContextManager[str]:
    """Serve respondents on ``host:port`` of loopback; yields the address.

    Parameters
    ----------
    share : FairShare
        The share of the whole process.

    Raises
    ------
    ConfigurationInvalid
        If the address is malformed, not loopback, or not available.
    """
    pages = application(service, share)
    return serving_http(listen, pages, setting="respondents_listen", n_requests_max=N_REQUESTS_MAX)


def application(service: Respondents, share: FairShare) -> WSGIApplication:
    """What respondents call, as a WSGI application."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        try:
            status, text, more = _reply(service, share, environ)
        except Refused as refused:
            found = {"code": refused.code, "message": refused.message, "hint": refused.hint}
            status, text, more = _status(refused), json.dumps(found), ()
        except Exception as error:  # noqa: BLE001 - the server's own would print its text
            structlog.get_logger("tacit").error("respondent_not_served", error=type(error).__name__)
            found = {"code": "internal", "message": "The server failed.", "hint": None}
            status, text, more = HTTPStatus.INTERNAL_SERVER_ERROR, json.dumps(found), ()
        body = text.encode()
        kind = ("Content-Type", "application/json"), ("Content-Length", str(len(body)))
        start_response(f"{status.value} {status.phrase}", [*kind, *EVERYWHERE, *more])
        return [body]

    return answer


def _reply(
    service: Respondents, share: FairShare, environ: WSGIEnvironment
) -> tuple[HTTPStatus, str, tuple[tuple[str, str], ...]]:
    # A server of WSGI reads a path as Latin-1, whatever it is.
    path = PATH.fullmatch(environ["PATH_INFO"].encode("latin-1").decode(errors="replace"))
    if path is None:
        raise UnknownName("There is no such page.")
    name, what, method = path["name"], path["what"], environ["REQUEST_METHOD"]
    if method == "OPTIONS":
        return HTTPStatus.OK, "{}", PREFLIGHT
    if method != METHODS[what]:
        raise InvalidRequest(f"This is for {METHODS[what]}.")
    token = _token(environ)
    if method == "GET":
        with _turn(share):
            asked = service.assignment(name, token, is_for_kept=what == "campaign")
            return HTTPStatus.OK, asked.campaign, ()
    body = _body(environ)
    with _turn(share):
        is_new = service.submit(name, token, body)
    return HTTPStatus.OK, json.dumps({"counted_before": not is_new}), ()


def _turn(share: FairShare) -> AbstractContextManager[None]:
    """A turn to work for one request."""
    return Shift(share, ACCOUNT, DEFAULT_TIMES, is_gone=lambda: False).working()


def _token(environ: WSGIEnvironment) -> str:
    found = BEARER.fullmatch(environ.get("HTTP_AUTHORIZATION", ""))
    if found is None:
        raise NotAuthenticated(
            "A respondent's token is missing.", hint="Send it as Authorization: Bearer TOKEN."
        )
    return found[1]


def _body(environ: WSGIEnvironment) -> str:
    """The body, in limited time; its length has to be said before."""
    length = environ.get("CONTENT_LENGTH") or ""
    if not (length.isascii() and length.isdecimal()) or len(length) > len(str(N_CHARACTERS_MAX)):
        raise InvalidRequest("A request must state the length of its body.")
    if int(length) > N_CHARACTERS_MAX:
        raise InvalidRequest(f"An answer is at most {N_CHARACTERS_MAX} characters long.")
    return _read(environ["wsgi.input"], int(length))


def _read(source: Any, n_bytes: int) -> str:
    until, found = time.monotonic() + BODY_SECONDS_MAX, bytearray()
    while len(found) < n_bytes:
        some = source.read1(n_bytes - len(found)) if time.monotonic() < until else b""
        if not some:
            raise InvalidRequest("The body of a request did not come, or not in time.")
        found += some
    try:
        return found.decode()
    except UnicodeDecodeError:
        raise InvalidRequest("The body of a request is not text.") from None


def _status(refused: Refused) -> HTTPStatus:
    found = (status for kind, status in STATUS.items() if isinstance(refused, kind))
    return next(found, HTTPStatus.SERVICE_UNAVAILABLE)
