"""Clients that take their time, or never say anything, do not keep others from being answered."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa
import pytest
from grpc_reflection.v1alpha import reflection_pb2_grpc
from structlog.testing import capture_logs

from accountant.ledger.ledger import Ledger
from cube.refusals import TooManyCalls
from proxy.api.requests import QueryRequest, QueryResult
from proxy.cli.serving.running import allow_many_connections
from proxy.identity.authenticate import LedgerAuthenticator
from proxy.identity.interceptor import N_CALLS_OF_ONE_MAX, N_OPEN_CALLS_MAX
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.scheduling import slow_clients as patience_module
from proxy.scheduling.slow_clients import CallSlots, SlowClientGuard
from proxy.wire.server import N_CALLS_MAX, N_THREADS
from tests.support.engine_fake import COUNT_ALL, CannedEngine
from tests.support.identities import (
    PATIENCE_SECONDS,
    REFUSED,
    bearer,
    credentials,
    refusal,
    soon,
    tables_seen,
    token_for,
)
from tests.support.serving import serving

SHORT = 0.5
N_HALF_OPEN = 1000
HUGE = "SELECT everything"
PIECE = pa.table({"n": [1.0] * 25_000})
HUGE_ANSWER = pa.concat_tables([PIECE] * 200)  # more than connections buffer: 40 MB


class TalkativeEngine(CannedEngine):
    """Knows one more statement, whose answer takes a while to send."""

    def answer(self, request: QueryRequest) -> QueryResult:
        return QueryResult(HUGE_ANSWER, None) if request.sql == HUGE else super().answer(request)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with credentials(tmp_path) as opened:
        yield opened


@pytest.fixture
def address(ledger: Ledger) -> Iterator[str]:
    with serving(TalkativeEngine(), authenticator=LedgerAuthenticator(ledger)) as served:
        yield served


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience_module, "SECONDS_TO_SEND_MAX", SHORT)
    monkeypatch.setattr(patience_module, "SECONDS_TO_TAKE_MAX", SHORT)


@contextmanager
def silence() -> Iterator[Iterator[bytes]]:
    """Messages that do not come until the block ends."""
    over = threading.Event()

    def messages() -> Iterator[bytes]:
        over.wait()
        yield from ()

    try:
        yield messages()
    finally:
        over.set()


def begun(channel: grpc.Channel, method: str, messages: Iterator[bytes], token: str | None) -> Any:
    """A call whose headers are sent, and whose message is not."""
    call: Any = channel.stream_unary(method)
    return call.future(
        messages, metadata=None if token is None else bearer(token), timeout=2 * PATIENCE_SECONDS
    )


def code_of(future: Any) -> grpc.StatusCode:
    future.exception()
    code: grpc.StatusCode = future.code()
    return code


def test_strangers_are_refused_before_they_have_said_anything(address: str) -> None:
    with ExitStack() as stack, grpc.insecure_channel(address) as channel:
        for _ in range(N_CALLS_MAX):
            messages = stack.enter_context(silence())
            stranger = begun(channel, "/tacit.v1.Tacit/Query", messages, None)
            assert code_of(stranger) is grpc.StatusCode.UNAUTHENTICATED
            assert stranger.details() == REFUSED


@pytest.mark.usefixtures("impatient")
def test_one_who_sends_nothing_leaves_room_for_others_and_is_cut_off(
    address: str, ledger: Ledger
) -> None:
    assert N_CALLS_OF_ONE_MAX < N_THREADS
    ann, bob = token_for(ledger, "ann"), token_for(ledger, "bob")
    with ExitStack() as stack:
        messages = [stack.enter_context(silence()) for _ in range(N_CALLS_OF_ONE_MAX + 5)]
        channel = stack.enter_context(grpc.insecure_channel(address))
        other = stack.enter_context(grpc.insecure_channel(address))
        calls = [begun(channel, "/tacit.v1.Tacit/Query", one, ann) for one in messages]
        assert tables_seen(other, bob)
        codes = [code_of(call) for call in calls]
        assert codes.count(grpc.StatusCode.CANCELLED) == N_CALLS_OF_ONE_MAX
        assert codes.count(grpc.StatusCode.RESOURCE_EXHAUSTED) == 5
        assert soon(lambda: bool(tables_seen(channel, ann)))


@pytest.mark.usefixtures("impatient")
def test_one_who_does_not_take_his_answer_is_cut_off(address: str, ledger: Ledger) -> None:
    token = token_for(ledger, "ann")
    with grpc.insecure_channel(address) as channel, capture_logs() as lines:
        request = tacit_pb2.QueryRequest(sql=HUGE)
        replies = TacitStub(channel).Query(request, metadata=bearer(token))
        assert next(replies).ipc
        assert soon(lambda: any(line.get("code") == "cancelled" for line in lines))
        code, _ = refusal(lambda: replies)
        assert code is grpc.StatusCode.CANCELLED
        assert tables_seen(channel, token)


@pytest.mark.usefixtures("impatient")
def test_one_who_takes_it_gets_all_of_it(address: str, ledger: Ledger) -> None:
    with grpc.insecure_channel(address) as channel:
        request = tacit_pb2.QueryRequest(sql=HUGE)
        replies = list(TacitStub(channel).Query(request, metadata=bearer(token_for(ledger, "ann"))))
    stream = b"".join(reply.ipc for reply in replies)
    assert pa.ipc.open_stream(stream).read_all().num_rows == HUGE_ANSWER.num_rows


def test_those_who_open_reflection_and_ask_nothing_do_not_use_up_the_threads(
    address: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience_module, "SECONDS_TO_SEND_MAX", 100 * PATIENCE_SECONDS)
    assert N_OPEN_CALLS_MAX < N_THREADS // 2
    with ExitStack() as stack, grpc.insecure_channel(address) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        silent = [stack.enter_context(silence()) for _ in range(N_CALLS_MAX)]
        calls = [stub.ServerReflectionInfo(messages) for messages in silent]
        assert soon(lambda: sum(call.is_active() for call in calls) <= N_OPEN_CALLS_MAX)
        with grpc.insecure_channel(address) as other:
            assert tables_seen(other, token_for(ledger, "ann"))
        for call in calls:
            call.cancel()


@contextmanager
def half_open(address: str, n_connections: int) -> Iterator[list[socket.socket]]:
    """Connections over which nothing is ever said."""
    host, _, port = address.rpartition(":")
    allow_many_connections()
    with ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection((host, int(port)), PATIENCE_SECONDS))
            for _ in range(n_connections)
        ]


def test_a_thousand_half_open_connections_keep_nobody_out(address: str, ledger: Ledger) -> None:
    token = token_for(ledger, "ann")
    with half_open(address, N_HALF_OPEN):
        for _ in range(10):
            with grpc.insecure_channel(address) as channel:
                assert tables_seen(channel, token)
                request = tacit_pb2.QueryRequest(sql=COUNT_ALL)
                assert list(TacitStub(channel).Query(request, metadata=bearer(token)))


@pytest.mark.slow
def test_and_the_server_closes_them(address: str) -> None:
    with half_open(address, N_HALF_OPEN) as connections:
        for connection in connections:
            while connection.recv(4096):  # the server's own greeting, then the end
                pass


# The parts of the guard against slow clients.


class Waiting:
    """A call that can be cut off."""

    def __init__(self) -> None:
        self.n_cut_off = 0

    def cancel(self) -> bool:
        self.n_cut_off += 1
        return True


def test_patience_ends_for_those_only_who_are_waited_for_too_long() -> None:
    now = [0.0]
    guard = SlowClientGuard(clock=lambda: now[0])
    slow: Any = Waiting()
    quick: Any = Waiting()
    with guard.waiting_for(slow, 10):
        now[0] = 5.0
        with guard.waiting_for(quick, 10):
            now[0] = 10.0
            assert guard.cut_off_overdue() == 0
            now[0] = 10.5
            assert guard.cut_off_overdue() == 1
        assert (slow.n_cut_off, quick.n_cut_off) == (1, 0)
    now[0] = 100.0
    assert guard.cut_off_overdue() == 0


def test_time_that_the_server_takes_is_nobodys_fault() -> None:
    now = [0.0]
    guard = SlowClientGuard(clock=lambda: now[0])
    call: Any = Waiting()

    def pieces() -> Iterator[int]:
        for piece in range(3):
            now[0] += 1000.0
            guard.cut_off_overdue()
            yield piece

    assert list(guard.sending(pieces(), call)) == [0, 1, 2]
    assert list(guard.reading(iter([1, 2]), call)) == [1, 2]
    assert not call.n_cut_off


def test_so_many_places_each_and_no_more() -> None:
    places = CallSlots(2)
    with places.taken_by("ann"), places.taken_by("ann"):
        with pytest.raises(TooManyCalls), places.taken_by("ann"):
            pass
        with places.taken_by("bob"):
            pass
    with places.taken_by("ann"):
        pass
