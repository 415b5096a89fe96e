"""Several processes that are one server, with real clients: ADBC, raw Flight SQL and psql.

The oracles are the ledger (its charges, its audit) and the receipts that clients were given.
"""

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa
import pytest
from adbc_driver_flightsql import dbapi
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message

from accountant.auditor.verify import verify
from accountant.ledger.opening import open_reader
from proxy.admin.ledger_admin import open_configured
from proxy.config.settings import load
from proxy.identity.issuing import Grant, issue_token
from proxy.protocol import flight_pb2, tacit_pb2
from proxy.protocol import flight_sql_pb2 as sql
from proxy.protocol.flight_pb2_grpc import FlightServiceStub
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.wire.arrow_ipc import flight_messages
from tests.support.serving_workers import WAIT_SECONDS, Workers, command, serving_workers, written

pytestmark = pytest.mark.processes

COUNT = "SELECT COUNT(*) AS n FROM people WHERE age >= "
N_CONNECTIONS_MAX = 64  # until each of two workers has one, but for odds of 2**-63
N_CLIENTS = 12
OWN_CONNECTION = (("grpc.use_local_subchannel_pool", 1),)


def packed(message: Message) -> bytes:
    envelope = AnyMessage()
    envelope.Pack(message)
    return envelope.SerializeToString()


@dataclass(frozen=True)
class Client:
    """A Flight SQL client of one connection, and so of one worker."""

    stub: FlightServiceStub
    token: str | None = None

    @property
    def headers(self) -> dict[str, Any]:
        metadata = () if self.token is None else (("authorization", f"Bearer {self.token}"),)
        return {"metadata": metadata, "timeout": WAIT_SECONDS}

    def prepare(self, text: str) -> bytes:
        request = sql.ActionCreatePreparedStatementRequest(query=text)
        action = flight_pb2.Action(type="CreatePreparedStatement", body=packed(request))
        (result,) = self.stub.DoAction(action, **self.headers)
        envelope = AnyMessage.FromString(result.body)
        made = sql.ActionCreatePreparedStatementResult.FromString(envelope.value)
        return made.prepared_statement_handle

    def bind(self, handle: bytes, value: int) -> None:
        command = sql.CommandPreparedStatementQuery(prepared_statement_handle=handle)
        first, *rest = flight_messages(pa.table({"1": [value]}))
        first.flight_descriptor.type = flight_pb2.FlightDescriptor.CMD
        first.flight_descriptor.cmd = packed(command)
        list(self.stub.DoPut(iter((first, *rest)), **self.headers))

    def info(self, command: Message) -> flight_pb2.FlightInfo:
        descriptor = flight_pb2.FlightDescriptor(
            type=flight_pb2.FlightDescriptor.CMD, cmd=packed(command)
        )
        return self.stub.GetFlightInfo(descriptor, **self.headers)

    def get(self, info: flight_pb2.FlightInfo) -> list[bytes]:
        (endpoint,) = info.endpoint
        return [one.SerializeToString() for one in self.stub.DoGet(endpoint.ticket, **self.headers)]

    def close(self, handle: bytes) -> None:
        request = sql.ActionClosePreparedStatementRequest(prepared_statement_handle=handle)
        action = flight_pb2.Action(type="ClosePreparedStatement", body=packed(request))
        list(self.stub.DoAction(action, **self.headers))


def run_of(handle: bytes) -> sql.CommandPreparedStatementQuery:
    return sql.CommandPreparedStatementQuery(prepared_statement_handle=handle)


@contextmanager
def of_both(address: str, token: str | None = None) -> Iterator[tuple[Client, Client]]:
    """A client of each of two workers. A handle's first byte says who made it."""
    with ExitStack() as stack:
        found: dict[int, Client] = {}
        for _ in range(N_CONNECTIONS_MAX):
            channel = stack.enter_context(grpc.insecure_channel(address, OWN_CONNECTION))
            client = Client(FlightServiceStub(channel), token)
            found.setdefault(client.prepare("SELECT 1 AS one")[0], client)
            if len(found) == 2:
                break
        yield found[0], found[1]


def charges(ledger: Path) -> tuple[int, float]:
    """How many charges there are, and what they add up to, by the auditor."""
    reader = open_reader(str(ledger))
    try:
        entries = list(reader.entries_after(0))
    finally:
        reader.close()
    verdict = verify(entries)
    assert verdict.problem is None
    (table,) = verdict.tables
    return sum(entry.kind == "charge" for entry in entries), float(table.spent)


def ask(address: str, text: str) -> tuple[list[dict[str, Any]], float]:
    """Rows, and what the receipt says, through ADBC."""
    with dbapi.connect(f"grpc://{address}", autocommit=True) as opened, opened.cursor() as cursor:
        cursor.execute(text)
        table = cursor.fetch_arrow_table()
    receipt = json.loads(table.schema.metadata[b"tacit.receipt"])
    return table.to_pylist(), receipt["epsilon_spent"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    with serving_workers(written(tmp_path_factory.mktemp("workers"))) as workers:
        yield workers


@pytest.fixture(scope="module")
def ledger(served: Workers) -> Path:
    return served.log.with_name("people.ledger")


def test_a_statement_prepared_at_one_worker_runs_at_the_other(served: Workers) -> None:
    with of_both(served.address) as (first, second):
        handle = first.prepare(COUNT + "?")
        second.bind(handle, 90)
        paid = first.info(run_of(handle))
        assert json.loads(paid.app_metadata)["epsilon_spent"] > 0
        told = [second.get(paid), first.get(paid), second.get(paid)]
        assert told[0] == told[1] == told[2]
        again = second.info(run_of(handle))  # what was bound there is bound here
        assert json.loads(again.app_metadata)["epsilon_spent"] == 0
        second.close(handle)
        with pytest.raises(grpc.RpcError, match="no longer holds that prepared statement"):
            first.info(run_of(handle))


def test_what_many_clients_lack_at_once_is_bought_once(served: Workers, ledger: Path) -> None:
    n_before, spent_before = charges(ledger)
    text = COUNT + "31 AND age < 57"
    with ThreadPoolExecutor(N_CLIENTS) as pool:
        told = list(pool.map(lambda _: ask(served.address, text), range(N_CLIENTS)))
    n_charges, spent = charges(ledger)
    assert n_charges == n_before + 1
    assert sum(epsilon for _, epsilon in told) == pytest.approx(spent - spent_before, rel=1e-12)
    values = {rows[0]["n"] for rows, _ in told}
    assert len(values) == 1


def test_metrics_and_health_are_one_servers(served: Workers) -> None:
    def shown() -> tuple[float, float]:
        with urllib.request.urlopen(f"http://{served.metrics}/metrics") as reply:
            lines = dict(
                line.rsplit(" ", 1)
                for line in reply.read().decode().splitlines()
                if not line.startswith("#")
            )
        n_answers = lines['tacit_answers_total{kind="public",table=""}']
        return float(n_answers), float(lines["tacit_ledger_entries"])

    before, _ = shown()
    with of_both(served.address) as both:
        for client in both:
            for _ in range(3):
                client.info(sql.CommandStatementQuery(query="SELECT 1 AS one"))
    end = time.monotonic() + WAIT_SECONDS
    while shown()[0] != before + 6:
        assert time.monotonic() < end
        time.sleep(0.1)
    with urllib.request.urlopen(f"http://{served.metrics}/readyz") as reply:
        assert reply.status == 200


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql_is_answered_by_whichever_worker(served: Workers) -> None:
    host, _, port = served.postgres.rpartition(":")
    where = f"host={host} port={port} dbname=tacit user=anonymous"

    def asked() -> str:
        run = ["psql", where, "-At", "-c", f"{COUNT}66"]
        done = subprocess.run(run, capture_output=True, text=True, check=True)  # noqa: S603 - ours
        return done.stdout

    assert len({asked() for _ in range(6)}) == 1


def test_the_port_is_nobody_elses(served: Workers, tmp_path: Path) -> None:
    other = written(tmp_path)
    taken = other.read_text().replace('listen = "127.0.0.1:0"', f'listen = "{served.address}"', 1)
    other.write_text(taken)
    for options in ((), ("--workers", "2")):
        refused = subprocess.run(  # noqa: S603 - our own command
            command(other, *options), capture_output=True, text=True, timeout=60, check=False
        )
        said = [line for line in refused.stderr.splitlines() if line.startswith("error")]
        assert refused.returncode == 1
        assert len(said) == 1
        assert f"The server cannot listen on {served.address}. Is another process" in said[0]


def test_a_worker_that_is_killed_costs_nobody_anything_else(tmp_path: Path) -> None:
    with serving_workers(written(tmp_path)) as served:
        with of_both(served.address) as both:
            tickets = [one.info(sql.CommandStatementQuery(query=f"{COUNT}50")) for one in both]
            spent = sum(json.loads(one.app_metadata)["epsilon_spent"] for one in tickets)
            killed = served.kill_one()
            # Of the two, the one whose worker goes on is not disturbed.
            said = [outcome(one, ticket) for one, ticket in zip(both, tickets, strict=True)]
            assert sorted(said) == [False, True]
        rows, epsilon = ask(served.address, f"{COUNT}50")
        assert (len(rows), epsilon) == (1, 0)
        served.await_event("worker_serves", 3)
        assert killed not in served.pids()
        assert len(served.pids()) == 2
        with of_both(served.address) as (first, second):
            tickets = [
                one.info(sql.CommandStatementQuery(query=f"{COUNT}9")) for one in (first, second)
            ]
            spent += sum(json.loads(one.app_metadata)["epsilon_spent"] for one in tickets)
            assert first.get(tickets[1]) == second.get(tickets[1])
    assert charges(tmp_path / "people.ledger")[1] == pytest.approx(spent, rel=1e-12)


def outcome(client: Client, info: flight_pb2.FlightInfo) -> bool:
    """Whether a client that does not reconnect gets its result."""
    try:
        client.stub.DoGet(info.endpoint[0].ticket, timeout=5.0)
        return bool(client.get(info))
    except grpc.RpcError:
        return False


def test_a_handle_is_of_no_use_to_another_analyst(tmp_path: Path) -> None:
    configuration = written(tmp_path, server="")
    with open_configured(load(configuration).ledger) as opened:
        ann, bob = (
            issue_token(opened, Grant(analyst=name, tables=("people",)), by="a test")[1]
            for name in ("ann", "bob")
        )
    with (
        serving_workers(configuration) as served,
        of_both(served.address, ann) as anns,
        of_both(served.address, bob) as bobs,
    ):
        handle = anns[0].prepare(COUNT + "12")
        info = anns[1].info(run_of(handle))
        assert anns[0].get(info) == anns[1].get(info)
        for client in bobs:
            with pytest.raises(grpc.RpcError, match="no longer holds that prepared statement"):
                client.info(run_of(handle))
            with pytest.raises(grpc.RpcError, match="no longer holds that result"):
                client.get(info)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_and_an_answer_under_way_is_given(
    tmp_path: Path, number: signal.Signals
) -> None:
    with serving_workers(written(tmp_path)) as served:
        pids = served.pids()
        with grpc.insecure_channel(served.address) as channel:
            stub = TacitStub(channel)
            stub.GetBudget(tacit_pb2.GetBudgetRequest(), timeout=WAIT_SECONDS)
            asked = stub.Query(tacit_pb2.QueryRequest(sql=COUNT + "3"), timeout=WAIT_SECONDS)
            first = next(asked)
            served.process.send_signal(number)
            assert first.ipc or list(asked)
        assert served.process.wait(WAIT_SECONDS) == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
        assert "Traceback" not in served.log.read_text()
    assert charges(tmp_path / "people.ledger")[0] == 1


def test_workers_do_not_outlive_who_started_them(tmp_path: Path) -> None:
    with serving_workers(written(tmp_path)) as served:
        pids = served.pids()
        os.kill(served.process.pid, signal.SIGKILL)
        served.process.wait(WAIT_SECONDS)
        end = time.monotonic() + WAIT_SECONDS
        while any(Path(f"/proc/{pid}").exists() for pid in pids):
            assert time.monotonic() < end
            time.sleep(0.1)


def test_what_is_wrong_is_said_once(tmp_path: Path) -> None:
    configuration = written(tmp_path)
    with (tmp_path / "people.csv").open("a") as file:
        file.write("nonsense\n")
    refused = subprocess.run(  # noqa: S603 - our own command
        command(configuration, "--workers", "3"),
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr.count("error [") == 1
    assert "Traceback" not in refused.stderr
