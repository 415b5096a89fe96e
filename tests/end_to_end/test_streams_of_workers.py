"""A stream of two real workers: told and asked at both, and through a kill of its holder.

Tried at both workers by connections of their own; what the audit says of the ledger is the oracle
of how often it was released.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import grpc
import pyarrow as pa
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage

from accountant.auditor.verify import verify
from accountant.ledger.credentials import EVERY_TABLE, Role
from accountant.ledger.opening import open_reader
from proxy.admin.ledger_admin import open_configured
from proxy.config.settings import load
from proxy.identity.issuing import Grant, issue_token
from proxy.protocol import flight_pb2, tacit_pb2
from proxy.protocol import flight_sql_pb2 as sql
from proxy.protocol.flight_pb2_grpc import FlightServiceStub
from proxy.protocol.tacit_pb2_grpc import TacitStub
from tests.support.every_call import packed
from tests.support.identities import bearer
from tests.support.serving_workers import WAIT_SECONDS, serving_workers, written

pytestmark = pytest.mark.processes

CREATE = "CREATE STREAM visits (user UNIVERSE 1000) WITH (epsilon => 8)"
COUNT = "SELECT COUNT(DISTINCT user) AS n FROM visits"
OWN_CONNECTION = (("grpc.use_local_subchannel_pool", 1),)
N_CONNECTIONS_MAX = 64  # until each of two workers has one, but for odds of 2**-63


class Client:
    """An owner with a connection of their own, and so at one worker."""

    def __init__(self, channel: grpc.Channel, token: str) -> None:
        self._channel, self._metadata = channel, bearer(token)

    @property
    def place(self) -> int:
        """Of the worker: the first byte of a handle that it makes."""
        request = packed(sql.ActionCreatePreparedStatementRequest(query="SELECT 1 AS one"))
        action = flight_pb2.Action(type="CreatePreparedStatement", body=request)
        stub = FlightServiceStub(self._channel)
        (result,) = stub.DoAction(action, metadata=self._metadata, timeout=WAIT_SECONDS)
        made = sql.ActionCreatePreparedStatementResult()
        AnyMessage.FromString(result.body).Unpack(made)
        return made.prepared_statement_handle[0]

    def ask(self, text: str) -> list[dict[str, float]]:
        replies = TacitStub(self._channel).Query(
            tacit_pb2.QueryRequest(sql=text), metadata=self._metadata, timeout=WAIT_SECONDS
        )
        ipc = b"".join(reply.ipc for reply in replies)
        rows: list[dict[str, float]] = pa.ipc.open_stream(ipc).read_all().to_pylist()
        return rows

    def observe(self, ids: range) -> None:
        message = tacit_pb2.ObserveRequest(stream="visits", ids=ids)
        TacitStub(self._channel).Observe(
            iter([message]), metadata=self._metadata, timeout=WAIT_SECONDS
        )


@contextmanager
def of_both(address: str, token: str) -> Iterator[tuple[Client, Client]]:
    with ExitStack() as stack:
        found: dict[int, Client] = {}
        for _ in range(N_CONNECTIONS_MAX):
            channel = stack.enter_context(grpc.insecure_channel(address, OWN_CONNECTION))
            client = Client(channel, token)
            found.setdefault(client.place, client)
            if len(found) == 2:
                break
        yield found[0], found[1]


def until_done(call: Callable[[], None]) -> None:
    """Send a call again while it is refused as unavailable."""
    end = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            call()
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE or time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            return


def test_a_stream_is_one_whichever_worker_is_reached_and_outlives_its_holder(
    tmp_path: Path,
) -> None:
    configuration = written(tmp_path, server="")
    with open_configured(load(configuration).ledger) as ledger:
        grant = Grant(analyst="ann", role=Role.OWNER, tables=(EVERY_TABLE,))
        token = issue_token(ledger, grant, by="a test")[1]
    with serving_workers(configuration) as served:
        holder = served.pids()[0]  # the first that was started has the first place
        with of_both(served.address, token) as (first, second):
            assert second.ask(CREATE)[0]["bits"] == 1000
            second.observe(range(200))
            first.observe(range(100, 250))
            os.kill(holder, signal.SIGKILL)
            until_done(lambda: second.observe(range(200, 300)))
            served.await_event("worker_serves", 3)
        with of_both(served.address, token) as (first, second):
            (row,) = second.ask(COUNT)
            # 1000 bits of epsilon 8 miss by a deviation of about 1; 30 off is in no lifetime.
            assert abs(row["n"] - 300) < 30
            assert first.ask(COUNT) == [row]
    reader = open_reader(str(tmp_path / "people.ledger"))
    try:
        entries = list(reader.entries_after(0))
    finally:
        reader.close()
    assert verify(entries).problem is None
    assert sum(one.kind == "epoch_released" for one in entries) == 1
    assert list((tmp_path / "people.ledger.streams").iterdir()) == []
