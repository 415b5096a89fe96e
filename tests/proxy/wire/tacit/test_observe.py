"""Observe: users of streams over the wire, durable before the reply, refused with codes."""

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from tests.support.identities import refusal
from tests.support.serving import serving
from tests.support.streaming import COUNT, CREATE, Streaming, streaming


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
