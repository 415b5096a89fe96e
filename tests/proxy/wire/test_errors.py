"""Whatever breaks behind the wire, a client sees a status, a stable code, and nothing else."""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, NoReturn

import grpc
import pyarrow as pa
import pytest
import structlog
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from cube import refusals
from cube.refusals import TooManyCalls
from proxy.api.requests import QueryRequest
from proxy.monitoring.metrics import BUCKETS
from proxy.protocol import flight_pb2, tacit_pb2
from proxy.protocol import flight_sql_pb2 as sql
from proxy.protocol.flight_pb2_grpc import FlightServiceStub
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.shared.refusal_details import CODE_KEY
from proxy.tables.extent import DataReplaced, HorizonMoved
from proxy.wire.errors import (
    DETAILS_BYTES_MAX,
    INCIDENT_KEY,
    STATUS,
    NotOffered,
    header_text,
)
from tests.support.engine_fake import COUNT_ALL, BrokenEngine, CannedEngine
from tests.support.refusals import SHORTFALL, kinds_of_refusal, refusal_of
from tests.support.serving import channel_to

SECRET = "secret 12345 in /home/someone"  # noqa: S105 - what must not get out


def packed(message: Message) -> bytes:
    envelope = AnyMessage()
    envelope.Pack(message)
    return envelope.SerializeToString()


def descriptor(message: Message) -> flight_pb2.FlightDescriptor:
    return flight_pb2.FlightDescriptor(type=flight_pb2.FlightDescriptor.CMD, cmd=packed(message))


STATEMENT = descriptor(sql.CommandStatementQuery(query=COUNT_ALL))
TABLES = packed(sql.CommandGetTables(include_schema=True))
PREPARE = flight_pb2.Action(
    type="CreatePreparedStatement",
    body=packed(sql.ActionCreatePreparedStatementRequest(query=COUNT_ALL)),
)

# Every call that reaches the engine, by every method it is reached by.
CALLS: dict[str, Callable[[grpc.Channel], object]] = {
    "Query": lambda ch: list(TacitStub(ch).Query(tacit_pb2.QueryRequest(sql=COUNT_ALL))),
    "Explain": lambda ch: TacitStub(ch).Explain(tacit_pb2.ExplainRequest(sql=COUNT_ALL)),
    "ListTables": lambda ch: TacitStub(ch).ListTables(tacit_pb2.ListTablesRequest()),
    "GetBudget": lambda ch: TacitStub(ch).GetBudget(tacit_pb2.GetBudgetRequest()),
    "GetFlightInfo": lambda ch: FlightServiceStub(ch).GetFlightInfo(STATEMENT),
    "GetSchema": lambda ch: FlightServiceStub(ch).GetSchema(STATEMENT),
    "DoGet": lambda ch: list(FlightServiceStub(ch).DoGet(flight_pb2.Ticket(ticket=TABLES))),
    "DoAction": lambda ch: list(FlightServiceStub(ch).DoAction(PREPARE)),
}
each_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())


class NativePanic(BaseException):
    """What a crash in native code looks like: beyond `Exception`."""


def failure_of(call: Callable[[grpc.Channel], object], error: BaseException) -> Any:
    with channel_to(BrokenEngine(error)) as channel, pytest.raises(grpc.RpcError) as caught:
        call(channel)
    return caught.value  # Any: a client's error is a Call too, which its type does not say


@each_call
@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(SECRET),
        KeyError(SECRET),
        RecursionError(SECRET),
        MemoryError(SECRET),
        NativePanic(SECRET),
        SystemExit(SECRET),
        StopIteration(SECRET),
        pa.ArrowInvalid(SECRET),
        refusals.LedgerCorrupt(SECRET),
        ExceptionGroup(SECRET, [ValueError(SECRET)]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_unexpected_error_says_nothing_but_an_incident_number(
    call: Callable[[grpc.Channel], object],
    error: BaseException,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with capture_logs() as lines, caplog.at_level(logging.DEBUG):
        failure = failure_of(call, error)
    assert failure.code() is grpc.StatusCode.INTERNAL
    trailers = dict(failure.trailing_metadata())
    incident = trailers[INCIDENT_KEY]
    assert trailers[CODE_KEY] == "internal_error"
    assert re.fullmatch(r"[0-9a-f]{16}", incident)
    assert incident in failure.details()
    captured = capfd.readouterr()
    seen = [failure.details(), failure.debug_error_string(), trailers, lines]
    told = " ".join(map(str, [*seen, caplog.text, captured.out, captured.err]))
    for leak in ("12345", "secret", "Traceback", ".py"):
        assert leak not in told
    (reported,) = (line for line in lines if line["event"] == "incident")
    assert reported["incident"] == incident
    assert reported["error"] in {type(error).__name__, "RuntimeError"}  # StopIteration is wrapped


@each_call
@pytest.mark.parametrize("kind", sorted(kinds_of_refusal(), key=str), ids=lambda cls: cls.__name__)
def test_a_refusal_reaches_the_client_with_its_code_message_and_hint(
    call: Callable[[grpc.Channel], object], kind: type[refusals.Refused]
) -> None:
    refusal = refusal_of(kind)
    failure = failure_of(call, refusal)
    assert failure.code() is next(STATUS[cls] for cls in kind.__mro__ if cls in STATUS)
    assert failure.details() == f"[{kind.code}] {refusal.message} {refusal.hint}"
    assert dict(failure.trailing_metadata())[CODE_KEY] == kind.code


def test_statuses_are_the_ones_clients_act_on() -> None:
    usual = grpc.StatusCode.INVALID_ARGUMENT
    unusual = {cls: status for cls, status in STATUS.items() if status is not usual}
    assert unusual == {
        NotOffered: grpc.StatusCode.UNIMPLEMENTED,
        refusals.UnknownName: grpc.StatusCode.NOT_FOUND,
        refusals.UnknownTicket: grpc.StatusCode.NOT_FOUND,
        refusals.NameTaken: grpc.StatusCode.ALREADY_EXISTS,
        refusals.TooSlow: grpc.StatusCode.DEADLINE_EXCEEDED,
        refusals.ClockDoubtful: grpc.StatusCode.UNAVAILABLE,
        refusals.BudgetExhausted: grpc.StatusCode.FAILED_PRECONDITION,
        refusals.LimitReached: grpc.StatusCode.FAILED_PRECONDITION,
        refusals.CostAboveCap: grpc.StatusCode.FAILED_PRECONDITION,
        refusals.GenerationOver: grpc.StatusCode.FAILED_PRECONDITION,
        refusals.TargetNotReached: grpc.StatusCode.FAILED_PRECONDITION,
        TooManyCalls: grpc.StatusCode.RESOURCE_EXHAUSTED,
        refusals.NotAuthenticated: grpc.StatusCode.UNAUTHENTICATED,
        refusals.NotAllowed: grpc.StatusCode.PERMISSION_DENIED,
        refusals.SourceUnavailable: grpc.StatusCode.UNAVAILABLE,
        HorizonMoved: grpc.StatusCode.UNAVAILABLE,
        DataReplaced: grpc.StatusCode.UNAVAILABLE,
        refusals.StoreUnavailable: grpc.StatusCode.UNAVAILABLE,
        refusals.LedgerUnavailable: grpc.StatusCode.UNAVAILABLE,
        refusals.LedgerLost: grpc.StatusCode.UNAVAILABLE,
    }


def test_an_error_in_the_middle_of_a_stream_leaks_nothing() -> None:
    class Poisoned(CannedEngine):
        """Breaks after the first messages are out."""

        def answer(self, request: QueryRequest) -> Any:
            release = super().answer(request)
            return _BreaksAtReceipt(release)

    with channel_to(Poisoned()) as channel:
        received: list[tacit_pb2.QueryReply] = []
        with pytest.raises(grpc.RpcError) as caught:
            received.extend(TacitStub(channel).Query(tacit_pb2.QueryRequest(sql=COUNT_ALL)))
    assert received[0].ipc
    assert "12345" not in str(caught.value)
    assert "[internal_error]" in str(caught.value)


class _BreaksAtReceipt:
    """A release whose data is sound and whose receipt is not."""

    def __init__(self, release: Any) -> None:
        self.data = release.data
        self._reads = 0
        self._receipt = release.receipt

    @property
    def receipt(self) -> Any:
        self._reads += 1
        if self._reads > 2:
            raise RuntimeError(SECRET)
        return self._receipt


@pytest.mark.parametrize(
    "message",
    ["x" * 1_000_000, "ä🙂" * 50_000, "\0\r\n\t%", "\ud800", "'); DROP TABLE x; --"],
    ids=["long", "wide", "control", "surrogate", "quotes"],
)
def test_a_hostile_message_still_reaches_the_client_as_a_status(message: str) -> None:
    failure = failure_of(CALLS["Query"], refusals.InvalidSql(message))
    assert failure.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert failure.details().startswith("[sql_syntax] ")


@given(text=st.text(st.characters(codec="utf-8"), max_size=40), repeats=st.integers(1, 400))
def test_a_cut_message_fits_its_header_and_begins_like_the_whole(text: str, repeats: int) -> None:
    whole = text * repeats
    sent = header_text(whole)
    cost = sum(1 if 32 <= byte < 127 and byte != ord("%") else 3 for byte in sent.encode())
    assert cost <= DETAILS_BYTES_MAX + len(" ...")
    assert sent == whole or whole.startswith(sent.removesuffix(" ..."))


def requests_logged(lines: list[MutableMapping[str, Any]]) -> list[MutableMapping[str, Any]]:
    return [line for line in lines if line["event"] == "request"]


@each_call
def test_each_call_leaves_one_log_line_without_its_sql(
    call: Callable[[grpc.Channel], object],
) -> None:
    with capture_logs() as lines, channel_to(CannedEngine()) as channel:
        call(channel)
    (line,) = requests_logged(lines)
    outcome = {"event", "log_level", "method", "code", "milliseconds_max", "epsilon"}
    assert line.keys() == outcome | {"analyst", "role"}
    assert line["code"] == "ok"
    assert (line["analyst"], line["role"]) == ("local", "owner")
    assert line["milliseconds_max"] / 1e3 in BUCKETS
    assert line["epsilon"] == (0.25 if line["method"].endswith(("Query", "GetFlightInfo")) else 0)
    assert "SELECT" not in str(lines)


def test_a_refused_call_is_logged_by_its_code() -> None:
    with capture_logs() as lines:
        failure_of(CALLS["Query"], refusals.BudgetExhausted(SHORTFALL))
    (line,) = requests_logged(lines)
    assert (line["code"], line["epsilon"]) == ("budget_exhausted", 0)
    assert "people" not in str(lines)
    assert not [line for line in lines if line["event"] == "incident"]


@pytest.fixture
def broken_log() -> Iterator[None]:
    def full_disk(*_: object) -> NoReturn:
        raise OSError(SECRET)

    before = structlog.get_config()["processors"]
    structlog.configure(processors=[full_disk])
    yield
    structlog.configure(processors=before)


@pytest.mark.usefixtures("broken_log")
def test_a_log_that_cannot_be_written_neither_withholds_an_answer_nor_leaks() -> None:
    with channel_to(CannedEngine()) as channel:
        assert CALLS["Query"](channel)
        assert CALLS["GetFlightInfo"](channel)
    failure = failure_of(CALLS["Query"], RuntimeError(SECRET))
    assert failure.details().startswith("[internal_error]")
    assert "12345" not in str(failure)


def test_a_client_that_hangs_up_is_no_incident() -> None:
    hung_up = threading.Event()

    def silence() -> Iterator[flight_pb2.FlightData]:
        hung_up.wait()
        yield from ()

    with capture_logs() as lines, channel_to(CannedEngine()) as channel:
        with pytest.raises(grpc.RpcError):
            list(FlightServiceStub(channel).DoPut(silence(), timeout=2))
        hung_up.set()
        for _ in range(3000):  # the server notices, and logs, in its own time
            if requests_logged(lines):
                break
            time.sleep(0.01)
    (line,) = lines
    # gRPC may tell the server of the hang-up as an error or as the end of the stream.
    assert (line["event"], line["code"]) in {
        ("request", "cancelled"),
        ("request", "invalid_request"),
    }
