"""What Prometheus is told: counted right, and in fixed labels only."""

import urllib.error
import urllib.request
from contextlib import suppress
from fractions import Fraction

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube import refusals
from proxy.api.requests import BudgetStatus
from proxy.monitoring.events import AnswerKind, Stage
from proxy.monitoring.metrics import BUCKETS, CALL_CODES, METHODS, OTHER, REFUSAL_CODES, Metrics
from proxy.protocol import flight_pb2, tacit_pb2
from proxy.protocol.flight_pb2_grpc import FlightServiceStub
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.wire.errors import STATUS
from tests.support.engine_fake import COUNT_ALL, BrokenEngine, CannedEngine
from tests.support.watched import TABLES, WAIT_SECONDS, page, series, told, value, watched

CANARY = "8675309"
LABELS = {
    "method": METHODS | {OTHER},
    "code": CALL_CODES | {OTHER},
    "table": {*TABLES, "", OTHER},
    "kind": set(map(str, AnswerKind)),
    "stage": set(map(str, Stage)),
    "le": {*map(str, BUCKETS), "+Inf"},
}


def check_labels(text: str) -> None:
    for _, labels in series(text):
        for name, label in labels:
            assert label in LABELS[name], (name, label)


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
