"""Observe: users of streams over the wire, durable before the reply, refused with codes."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import grpc
import pytest

from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.scheduling.fair_share import CallTimes
from proxy.streams.feature import N_CALLS_OF_ONE_MAX
from tests.support.identities import refusal
from tests.support.serving import serving
from tests.support.streaming import COUNT, CREATE, EACH, WATCHED, Streaming, streaming


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Streaming]:
    with streaming(tmp_path / "a.ledger") as found:
        yield found


@pytest.fixture
def stub(server: Streaming) -> Iterator[TacitStub]:
    with (
        serving(server.engine, streams=server.streams) as address,
        grpc.insecure_channel(address) as channel,
    ):
        yield TacitStub(channel)


def arrived(ids: range | list[int], stream: str = "visits") -> tacit_pb2.ObserveRequest:
    return tacit_pb2.ObserveRequest(stream=stream, ids=ids)


def test_users_of_several_messages_and_streams_are_noted(
    server: Streaming, stub: TacitStub
) -> None:
    server.rows(CREATE)
    server.rows(CREATE.replace("visits", "hits"))
    stub.Observe(iter([arrived(range(200)), arrived(range(100), "hits"), arrived(range(150, 300))]))
    assert abs(server.rows(COUNT)[0]["n"] - 300) < 30
    assert abs(server.rows(COUNT.replace("visits", "hits"))[0]["n"] - 100) < 30


def test_a_message_is_noted_as_a_whole_or_not_at_all(server: Streaming, stub: TacitStub) -> None:
    server.rows(CREATE)
    wrong = [arrived(range(100)), arrived([*range(100, 900), 1000]), arrived(range(100, 200))]
    code, said = refusal(lambda: stub.Observe(iter(wrong)))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "outside the universe of the stream, which is 0 to 999" in said
    assert abs(server.rows(COUNT)[0]["n"] - 100) < 30


def test_a_stream_that_is_unknown_or_over_is_refused(server: Streaming, stub: TacitStub) -> None:
    assert refusal(lambda: stub.Observe(iter([arrived([1])])))[0] is grpc.StatusCode.NOT_FOUND
    server.rows(CREATE)
    server.rows(COUNT)
    code, said = refusal(lambda: stub.Observe(iter([arrived([1])])))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "it was released" in said


def test_users_leave_where_that_was_declared(server: Streaming, stub: TacitStub) -> None:
    server.rows(CREATE.replace("epsilon => 8", "epsilon => 8, departures => true"))
    left = tacit_pb2.ObserveRequest(stream="visits", ids=range(100), left=True)
    stub.Observe(iter([arrived(range(300)), left]))
    assert abs(server.rows(COUNT)[0]["n"] - 200) < 30


def test_a_call_without_users_is_answered(stub: TacitStub) -> None:
    stub.Observe(iter([]))


def test_predicates_of_a_message_hold_for_all_of_it(server: Streaming, stub: TacitStub) -> None:
    server.rows(WATCHED)
    paid = tacit_pb2.ObserveRequest(stream="visits", ids=range(100), where=["paid"])
    stub.Observe(iter([arrived(range(300)), paid]))
    (each,) = server.rows(EACH)
    assert all(abs(n - true) < 30 for n, true in zip(each.values(), (300, 100, 0), strict=True))


def test_one_collector_has_few_calls_open_and_others_go_on(
    server: Streaming, stub: TacitStub
) -> None:
    """A call may be as slow as people come, and holds a thread meanwhile."""
    server.rows(CREATE)
    ended = threading.Event()

    def slowly() -> Iterator[tacit_pb2.ObserveRequest]:
        yield arrived([1])
        ended.wait()

    ends: Queue[str] = Queue()

    def call() -> None:
        try:
            stub.Observe(slowly())
        except grpc.RpcError as error:
            ends.put(str(error))
        else:
            ends.put("done")

    calls = [threading.Thread(target=call) for _ in range(N_CALLS_OF_ONE_MAX + 1)]
    for one in calls:
        one.start()
    assert f"{N_CALLS_OF_ONE_MAX} calls are already open" in ends.get(timeout=30)
    assert len(stub.ListTables(tacit_pb2.ListTablesRequest(), timeout=30).tables) == 1
    ended.set()
    for one in calls:
        one.join()
    assert [ends.get() for _ in range(N_CALLS_OF_ONE_MAX)] == ["done"] * N_CALLS_OF_ONE_MAX


def test_a_call_has_the_time_of_a_job_and_no_more(server: Streaming) -> None:
    server.rows(CREATE)

    def endless() -> Iterator[tacit_pb2.ObserveRequest]:
        while True:
            yield arrived([1])
            time.sleep(0.05)

    times = CallTimes(statement=0.5, job=1)
    with (
        serving(server.engine, streams=server.streams, times=times) as address,
        grpc.insecure_channel(address) as channel,
    ):
        _, said = refusal(lambda: TacitStub(channel).Observe(endless(), timeout=60))
    assert "1 seconds" in said
