"""The pages for Prometheus: no request is quoted, and only this machine is answered."""

import itertools
import socket

import pytest

from cube import refusals
from proxy.monitoring import loopback_http
from proxy.monitoring.metrics import Metrics
from proxy.monitoring.service import N_REQUESTS_MAX, application, serving_metrics
from tests.support.engine_fake import CannedEngine
from tests.support.watched import TABLES, WAIT_SECONDS, page, watched

CANARY = "8675309"


def exchange(address: str, request: bytes) -> bytes:
    host, _, port = address.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=WAIT_SECONDS) as peer:
        peer.sendall(request)
        received = b""
        while chunk := peer.recv(65536):
            received += chunk
    return received


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (f"GET /{CANARY} HTTP/1.1", b"404"),
        ("GET /metrics/ HTTP/1.1", b"404"),
        ("GET /../metrics HTTP/1.1", b"404"),
        ("POST /metrics HTTP/1.1", b"405"),
        (f"{CANARY} /metrics HTTP/1.1", b"405"),
        (f"GET /metrics {CANARY} HTTP/1.1", b"400"),
        (f"GET /metrics HTTP/{CANARY}.0", b"505"),
        (f"GET /{CANARY * 10_000} HTTP/1.1", b"414"),
        (f"GET /metrics?name[]={CANARY} HTTP/1.1", b"200"),
    ],
    ids=lambda given: given[:30] if isinstance(given, str) else given.decode(),
)
def test_no_request_of_http_is_quoted(
    request_line: str, status: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with watched(CannedEngine()) as (_, _channel, address):
        reply = exchange(address, f"{request_line}\r\nHost: {CANARY}\r\n\r\n".encode())
    assert status in reply.partition(b"\n")[0] or status in reply
    assert CANARY.encode() not in reply
    captured = capfd.readouterr()
    assert CANARY not in captured.out + captured.err


def test_silent_connections_are_given_up_and_others_served_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loopback_http._Handler, "timeout", 1.0)
    with watched(CannedEngine()) as (_, _channel, address):
        host, _, port = address.removeprefix("http://").rpartition(":")
        peers = [socket.create_connection((host, int(port))) for _ in range(N_REQUESTS_MAX + 4)]
        for peer in peers[N_REQUESTS_MAX:]:
            peer.settimeout(WAIT_SECONDS)
            assert peer.recv(1) == b""  # turned away at once
        for peer in peers[:N_REQUESTS_MAX]:
            peer.settimeout(WAIT_SECONDS)
            assert peer.recv(1) == b""  # given up after some seconds without a word
        for peer in peers:
            peer.close()
        assert page(address, "/healthz") == "alive\n"


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "10.0.0.1:0", "example.org:0", "", "x"])
def test_only_this_machine_is_shown_the_metrics(listen: str) -> None:
    pages = application(Metrics(TABLES).registry, lambda: True)
    with (
        pytest.raises(refusals.ConfigurationInvalid, match="is not a loopback address"),
        serving_metrics(listen, pages),
    ):
        pass


def test_a_port_in_use_is_said_to_be() -> None:
    pages = application(Metrics(TABLES).registry, lambda: True)
    with (
        serving_metrics("127.0.0.1:0", pages) as address,
        pytest.raises(refusals.ConfigurationInvalid, match="cannot be served on"),
        serving_metrics(address, pages),
    ):
        pass


def test_ipv6_loopback_is_served() -> None:
    pages = application(Metrics(TABLES).registry, lambda: True)
    with serving_metrics("[::1]:0", pages) as address:
        assert "tacit_ledger_entries" in page(f"http://{address}", "/metrics")


def test_a_request_that_dribbles_in_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback_http, "REQUEST_SECONDS_MAX", 0.5)
    with watched(CannedEngine()) as (_, _channel, address):
        host, _, port = address.removeprefix("http://").rpartition(":")
        with socket.create_connection((host, int(port)), timeout=0.05) as peer:
            for byte in itertools.cycle(b"GET /healthz"):  # it never falls silent, nor ends
                try:
                    peer.send(bytes([byte]))
                    if peer.recv(1) == b"":
                        break
                except TimeoutError:
                    continue
                except ConnectionError:
                    break
        assert page(address, "/healthz") == "alive\n"


def test_as_many_connections_as_may_come_at_once_wait_to_be_accepted() -> None:
    """Whom the system turns away tries again after a second: here nobody has to."""
    n_waiting = 64
    with loopback_http._Server(1, ("127.0.0.1", 0), loopback_http._Handler) as listening:
        where = ("127.0.0.1", listening.server_port)  # and nobody accepts
        peers = [socket.create_connection(where, timeout=0.9) for _ in range(n_waiting)]
        for one in peers:
            one.close()


def test_a_reply_comes_in_one_piece() -> None:
    """A server that dies leaves a reply or none, not a first line that says that all is well."""
    with watched(CannedEngine()) as (_, _channel, address):
        host, _, port = address.removeprefix("http://").rpartition(":")
        for _ in range(20):
            with socket.create_connection((host, int(port)), timeout=WAIT_SECONDS) as peer:
                peer.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
                assert peer.recv(65536).endswith(b"alive\n")
