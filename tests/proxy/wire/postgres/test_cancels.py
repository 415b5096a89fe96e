"""Cancelling what a connection asks: by its key alone, at whichever worker, and nothing later."""

import struct
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest

from cube.pace import checkpoint
from proxy.api.requests import QueryRequest, QueryResult
from proxy.workers.crew import Crew, Seat
from tests.support.engine_fake import COUNT_ALL, CannedEngine
from tests.support.postgres_wire import postgres_serving
from tests.support.raw_postgres import Reply, ended, query, raw_client, tags


def cancelling(process: int, key: int) -> bytes:
    return struct.pack("!iiiI", 16, 80877102, process, key)


def keys(replies: list[Reply]) -> tuple[int, int]:
    """The numbers by which a connection that has logged in can be cancelled."""
    (found,) = [reply.body for reply in replies if reply.tag == "K"]
    process, key = struct.unpack("!iI", found)
    return process, key


class EndlessEngine(CannedEngine):
    """It works on an answer until it is stopped."""

    def __init__(self) -> None:
        super().__init__()
        self.began = threading.Event()

    def answer(self, request: QueryRequest) -> QueryResult:  # noqa: ARG002 - the protocol names it
        self.began.set()
        until = time.monotonic() + 20
        while time.monotonic() < until:
            checkpoint()
            time.sleep(0.002)
        return QueryResult(pa.table({"n": [0.0]}), None)


def test_a_cancel_needs_the_right_key() -> None:
    engine = EndlessEngine()
    with postgres_serving(engine) as address, raw_client(address) as client:
        process, key = keys(client.log_in())
        client.send(query(COUNT_ALL))
        assert engine.began.wait(10)
        for wrong in ((process, key ^ 1), (process, 0), (process + 1, key), (-process, key)):
            with raw_client(address) as other:
                other.send(cancelling(*wrong))
                assert ended(other) == []
        client.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            client.reply()
        client.socket.settimeout(20)
        with raw_client(address) as other:
            other.send(cancelling(process, key))
            assert ended(other) == []
        said = [reply for reply in client.until_ready() if reply.tag == "E"]
        assert [reply.fields["C"] for reply in said] == ["57014"]


def test_a_cancel_reaches_the_worker_whose_connection_it_names() -> None:
    engine = EndlessEngine()
    with tempfile.TemporaryDirectory(prefix="tacit-") as folder, ExitStack() as stack:
        crews = [stack.enter_context(Crew(Seat(place, 2, Path(folder)))) for place in range(2)]
        first, second = (stack.enter_context(postgres_serving(engine, crew=one)) for one in crews)
        with raw_client(second) as client:
            process, key = keys(client.log_in())
            client.send(query(COUNT_ALL))
            assert engine.began.wait(10)
            for wrong in ((process, key ^ 1), (process + 1, key)):
                with raw_client(first) as other:
                    other.send(cancelling(*wrong))
                    assert ended(other) == []
            client.socket.settimeout(0.5)
            with pytest.raises(TimeoutError):
                client.reply()
            client.socket.settimeout(20)
            with raw_client(first) as other:
                other.send(cancelling(process, key))
                assert ended(other) == []
            said = [reply for reply in client.until_ready() if reply.tag == "E"]
            assert [reply.fields["C"] for reply in said] == ["57014"]


def test_a_cancel_of_nothing_stops_nothing_that_comes_later() -> None:
    with postgres_serving(CannedEngine()) as address, raw_client(address) as client:
        process, key = keys(client.log_in())
        with raw_client(address) as other:
            other.send(cancelling(process, key))
            assert ended(other) == []
        assert "D" in tags(client.ask(query(COUNT_ALL)))
