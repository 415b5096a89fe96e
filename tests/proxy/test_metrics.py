"""What Prometheus is told: counted right, in fixed labels only, and no time finer than a bucket."""

import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from itertools import pairwise

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from cube import refusals
from proxy.answers import BudgetStatus, QueryEngine
from proxy.buckets import BEYOND, BUCKETS, edge_of
from proxy.interceptors import STATUS
from proxy.metrics import CALL_CODES, METHODS, OTHER, REFUSAL_CODES, Metrics
from proxy.protocol import flight_pb2, tacit_pb2
from proxy.protocol.flight_pb2_grpc import FlightServiceStub
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.server import SERVICES, start_server
from proxy.watch import AnswerKind, Stage
from proxy.watch_health import Monitoring, Readiness
from proxy.watch_http import N_REQUESTS_MAX, application, serving_http
from tests.support.engine_fake import COUNT_ALL, BrokenEngine, CannedEngine
from tests.support.serving import EverybodyLocal

CANARY = "8675309"
TABLES = ("people", "ad_hoc")
LABELS = {
    "method": METHODS | {OTHER},
    "code": CALL_CODES | {OTHER},
    "table": {*TABLES, "", OTHER},
    "kind": set(map(str, AnswerKind)),
    "stage": set(map(str, Stage)),
    "le": {*map(str, BUCKETS), "+Inf"},
}
WAIT_SECONDS = 30.0

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def series(text: str) -> Series:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def told(metrics: Metrics) -> str:
    return generate_latest(metrics.registry).decode()


def value(metrics: Metrics, name: str, **labels: str) -> float:
    return series(told(metrics))[name, frozenset(labels.items())]


def check_labels(text: str) -> None:
    for _, labels in series(text):
        for name, label in labels:
            assert label in LABELS[name], (name, label)


@contextmanager
def watched(engine: QueryEngine) -> Iterator[tuple[Metrics, grpc.Channel, str]]:
    metrics = Metrics(TABLES)
    monitoring = Monitoring(metrics, Readiness(SERVICES, is_ready=True))
    access = EverybodyLocal()
    server = start_server(engine, "127.0.0.1:0", access=access, monitoring=monitoring)
    pages = application(metrics.registry, lambda: monitoring.readiness.is_ready)
    try:
        with (
            grpc.insecure_channel(server.address) as channel,
            serving_http("127.0.0.1:0", pages) as http,
        ):
            yield metrics, channel, f"http://{http}"
    finally:
        server.stop()


def page(address: str, path: str) -> str:
    with urllib.request.urlopen(address + path, timeout=WAIT_SECONDS) as reply:  # noqa: S310 - http
        body: bytes = reply.read()
    return body.decode()


HOSTILE_METHODS = (
    f"/tacit.v1.Tacit/Query{CANARY}",
    f"/{CANARY}/Query",
    "/tacit.v1.Tacit/Query\u2028",
    "/tacit.v1.Tacit/Query/",
    "/tacit.v1.Tacit/query",
    "//",
    '/tacit.v1.Tacit/Query"} 1\n',
    "/" + CANARY * 300,
)


def send_hostile_calls(channel: grpc.Channel) -> None:
    for method in HOSTILE_METHODS:
        odd: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method)
        with pytest.raises(grpc.RpcError):
            odd(b"", timeout=WAIT_SECONDS)
    tacit, flight = TacitStub(channel), FlightServiceStub(channel)
    for text in (f"SELECT {CANARY}", f"SELECT n FROM t{CANARY}", f"'{CANARY}", CANARY * 999):  # noqa: S608 - it is meant to be hostile
        headers = (("tacit-half-width", "1"), ("x-analyst", CANARY), ("user-agent", CANARY))
        ticket = flight_pb2.Ticket(ticket=text.encode())
        descriptor = flight_pb2.FlightDescriptor(path=[text], cmd=text.encode())
        with pytest.raises(grpc.RpcError):
            list(tacit.Query(tacit_pb2.QueryRequest(sql=text), metadata=headers))
        with pytest.raises(grpc.RpcError):
            tacit.Explain(tacit_pb2.ExplainRequest(sql=text), metadata=headers)
        with pytest.raises(grpc.RpcError):
            tacit.GetBudget(tacit_pb2.GetBudgetRequest(table=text))
        with pytest.raises(grpc.RpcError):
            list(flight.DoGet(ticket))
        with pytest.raises(grpc.RpcError):
            flight.GetFlightInfo(descriptor)
        with pytest.raises(grpc.RpcError):
            list(flight.DoAction(flight_pb2.Action(type=text, body=text.encode())))


def test_no_hostile_request_puts_a_text_among_the_metrics() -> None:
    with watched(CannedEngine()) as (_, channel, address):
        send_hostile_calls(channel)
        for path in (f"/{CANARY}", f"/metrics/{CANARY}", f"/metrics?name[]={CANARY}"):
            with suppress(urllib.error.HTTPError):
                page(address, path)
        text = page(address, "/metrics")
    assert CANARY not in text
    check_labels(text)
    unknown = frozenset({("method", OTHER), ("code", "unimplemented")})
    n_odd = len(HOSTILE_METHODS)
    assert series(text)["tacit_calls_total", unknown] == n_odd


def test_hostile_requests_make_no_more_series_the_longer_they_go_on() -> None:
    with watched(CannedEngine()) as (metrics, channel, _):
        send_hostile_calls(channel)
        before = series(told(metrics)).keys()
        send_hostile_calls(channel)
        assert series(told(metrics)).keys() == before


@given(method=st.text(), code=st.text(), table=st.text(), kind=st.sampled_from(AnswerKind))
def test_whatever_is_said_labels_are_of_the_list(
    method: str, code: str, table: str, kind: AnswerKind
) -> None:
    metrics = Metrics(TABLES)
    metrics.called(method, code)
    metrics.answered("" if kind is AnswerKind.PUBLIC else table, kind)
    metrics.show_ledger(
        [BudgetStatus(table, Fraction(1), Fraction(0), 0)], n_entries=1, is_writable=True
    )
    check_labels(told(metrics))


def test_every_call_is_counted_by_how_it_ended() -> None:
    with watched(CannedEngine()) as (metrics, channel, _):
        stub = TacitStub(channel)
        for _ in range(3):
            list(stub.Query(tacit_pb2.QueryRequest(sql=COUNT_ALL)))
        with pytest.raises(grpc.RpcError):
            list(stub.Query(tacit_pb2.QueryRequest(sql="SELECT")))
    query = "/tacit.v1.Tacit/Query"
    assert value(metrics, "tacit_calls_total", method=query, code="ok") == 3
    assert value(metrics, "tacit_calls_total", method=query, code="sql_syntax") == 1
    assert value(metrics, "tacit_refusals_total", code="sql_syntax") == 1
    assert value(metrics, "tacit_incidents_total") == 0
    assert value(metrics, "tacit_stage_seconds_count", stage="wire") == 4


def after_a_failure(error: Exception) -> Metrics:
    broken = BrokenEngine(error)
    with watched(broken) as (metrics, channel, _), pytest.raises(grpc.RpcError):
        TacitStub(channel).ListTables(tacit_pb2.ListTablesRequest())
    return metrics


def test_an_unexpected_error_is_counted_as_an_incident() -> None:
    metrics = after_a_failure(RuntimeError(CANARY))
    assert value(metrics, "tacit_incidents_total") == 1
    listing = "/tacit.v1.Tacit/ListTables"
    assert value(metrics, "tacit_calls_total", method=listing, code="internal_error") == 1
    assert not any(value(metrics, "tacit_refusals_total", code=code) for code in REFUSAL_CODES)


def test_calls_without_a_credential_are_counted_apart() -> None:
    metrics = after_a_failure(refusals.NotAuthenticated("No."))
    assert value(metrics, "tacit_authentication_failures_total") == 1
    assert value(metrics, "tacit_refusals_total", code="not_authenticated") == 1


def test_every_refusal_the_firewall_knows_has_a_label() -> None:
    assert {refusal.code for refusal in STATUS} <= REFUSAL_CODES


def test_every_method_that_is_served_has_a_label_of_its_own() -> None:
    with watched(CannedEngine()) as (metrics, channel, _):
        for method in METHODS:
            raw: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(method)
            with suppress(grpc.RpcError):
                list(raw(iter([b""]), timeout=WAIT_SECONDS))
    calls = [labels for name, labels in series(told(metrics)) if name == "tacit_calls_total"]
    assert {dict(labels)["method"] for labels in calls} == METHODS


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_stage_takes_its_time_from_the_one_around_it() -> None:
    clock = Clock()
    metrics = Metrics(TABLES, clock)
    with metrics.stage(Stage.WIRE):
        clock.now += 0.0025
        with metrics.stage(Stage.LOOK):
            clock.now += 0.18
            with metrics.stage(Stage.PLAN):
                clock.now += 4
        with metrics.stage(Stage.CHARGE):
            clock.now += 0.04
    with metrics.stage(Stage.PRICE):
        clock.now += 0.009
    sums = {stage: value(metrics, "tacit_stage_seconds_sum", stage=stage) for stage in Stage}
    assert sums == {"wire": 0.003, "look": 0.2, "plan": 5, "charge": 0.05, "price": 0.01} | {
        "measure": 0,
        "outer": 0,
        "wait": 0,
    }


def test_a_stage_that_fails_is_timed_all_the_same() -> None:
    metrics = Metrics(TABLES)
    with pytest.raises(KeyError), metrics.stage(Stage.MEASURE):
        raise KeyError(CANARY)
    assert value(metrics, "tacit_stage_seconds_count", stage="measure") == 1


def test_stages_of_different_threads_take_nothing_from_one_another() -> None:
    clock = Clock()
    metrics = Metrics(TABLES, clock)

    def look() -> None:
        with metrics.stage(Stage.LOOK):
            clock.now += 0.2

    with metrics.stage(Stage.WIRE):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert value(metrics, "tacit_stage_seconds_sum", stage="wire") == 0.2


@given(st.lists(st.floats(0, 1000), max_size=30))
def test_no_time_is_known_better_than_by_its_bucket(times: list[float]) -> None:
    """Two runs that agree on every bucket agree on every figure."""
    texts = set()
    for moved in (times, [edge_of(seconds) for seconds in times]):
        clock = Clock()
        metrics = Metrics(TABLES, clock)
        for seconds in moved:
            clock.now = 0.0  # so that no addition moves a time off its edge
            with metrics.stage(Stage.MEASURE):
                clock.now = seconds
        lines = told(metrics).splitlines()
        texts.add("\n".join(line for line in lines if "_created" not in line))
    assert len(texts) == 1


@given(st.floats(0, 29))
def test_a_time_lies_in_the_bucket_it_is_said_to(seconds: float) -> None:
    edge = edge_of(seconds)
    place = BUCKETS.index(edge)
    assert seconds <= edge
    assert place == 0 or BUCKETS[place - 1] < seconds


def test_bucket_edges_rise_and_are_near_one_another() -> None:
    assert BUCKETS[-1] < BEYOND
    for lower, upper in pairwise(BUCKETS):
        assert lower < upper <= 3 * lower


def test_purchases_under_way_are_counted_while_they_are() -> None:
    metrics = Metrics(TABLES)
    with metrics.purchase(), metrics.purchase():
        assert value(metrics, "tacit_purchases_in_flight") == 2
    with pytest.raises(KeyError), metrics.purchase():
        raise KeyError
    assert value(metrics, "tacit_purchases_in_flight") == 0


def test_answers_are_counted_by_table_and_kind_from_zero() -> None:
    metrics = Metrics(TABLES)
    kinds = {(table, kind): 0.0 for table in TABLES for kind in ("free", "paid")}
    kinds["people", "paid"] = 2
    kinds["", "public"] = 1
    for _ in range(2):
        metrics.answered("people", AnswerKind.PAID)
    metrics.answered("", AnswerKind.PUBLIC)
    found = {
        (table, kind): value(metrics, "tacit_answers_total", table=table, kind=kind)
        for table, kind in kinds
    }
    assert found == kinds


def test_gauges_say_what_the_ledger_says() -> None:
    metrics = Metrics(TABLES)
    budgets = [BudgetStatus("people", Fraction(3), Fraction(1, 4), 7)]
    metrics.show_ledger(budgets, n_entries=12, is_writable=False)
    assert value(metrics, "tacit_epsilon_left", table="people") == 2.75
    assert value(metrics, "tacit_epsilon_limit", table="people") == 3
    assert value(metrics, "tacit_ledger_entries") == 12
    assert value(metrics, "tacit_ledger_writable") == 0


def test_two_sets_of_metrics_share_nothing() -> None:
    first, second = Metrics(TABLES), Metrics(TABLES)
    first.incident()
    assert value(second, "tacit_incidents_total") == 0


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


def test_silent_connections_are_given_up_and_others_served_afterwards() -> None:
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
        pytest.raises(refusals.ConfigurationInvalid, match="only this machine reaches"),
        serving_http(listen, pages),
    ):
        pass


def test_a_port_in_use_is_said_to_be() -> None:
    pages = application(Metrics(TABLES).registry, lambda: True)
    with (
        serving_http("127.0.0.1:0", pages) as address,
        pytest.raises(refusals.ConfigurationInvalid, match="cannot be served on"),
        serving_http(address, pages),
    ):
        pass


def test_ipv6_loopback_is_served() -> None:
    pages = application(Metrics(TABLES).registry, lambda: True)
    with serving_http("[::1]:0", pages) as address:
        assert "tacit_ledger_entries" in page(f"http://{address}", "/metrics")
