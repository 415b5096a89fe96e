"""An answer is charged once, whatever its client does: ledger, receipts and audit agree."""

import struct
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from accountant.auditor.verify import verify
from accountant.ledger.opening import open_reader
from accountant.noise.lattice_noise import SystemNoise
from cube.pace import checkpoint
from proxy.api.requests import QueryRequest, QueryResult
from proxy.scheduling.fair_share import CLIENT_SECONDS
from tests.sql import world
from tests.support.fakes import KnownTable
from tests.support.identities import soon
from tests.support.postgres_wire import postgres_serving
from tests.support.raw_postgres import (
    SYNC,
    RawClient,
    bind,
    describe,
    execute,
    parse,
    query,
    raw_client,
    tags,
)

BY_SEX = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex ORDER BY sex"  # three rows


class Recording:
    """An engine that keeps receipts, and lets a test look on before an answer and after it.

    Parameters
    ----------
    engine : Engine
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.receipts: list[Fraction] = []
        self.before, self.after = threading.Event(), threading.Event()
        self.may_begin, self.may_end = threading.Event(), threading.Event()
        self.may_begin.set()
        self.may_end.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def answer(self, request: QueryRequest) -> QueryResult:
        self.before.set()
        assert self.may_begin.wait(20)
        time.sleep(2 * CLIENT_SECONDS)  # whether the client is there is looked at now and then
        checkpoint()
        result: QueryResult = self._engine.answer(request)
        assert result.receipt is not None
        self.receipts.append(result.receipt.epsilon_spent)
        self.after.set()
        assert self.may_end.wait(20)
        return result


class Served(NamedTuple):
    """A listener, what is behind it, and the ledger's file."""

    address: str
    engine: Recording
    ledger: Path

    @property
    def n_charges(self) -> int:
        """How many charges the ledger has, whose sum is that of the receipts and of the audit."""
        reader = open_reader(str(self.ledger))
        try:
            entries = tuple(reader.entries_after(0))
        finally:
            reader.close()
        verdict = verify(entries)
        assert verdict.problem is None
        (audited,) = verdict.tables
        assert audited.spent == sum(self.engine.receipts)
        return sum(one.kind == "charge" for one in entries)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    source = KnownTable(world.SCHEMA, world.positions())
    with world.patients_engine(tmp_path, source, SystemNoise()) as engine:
        recording = Recording(engine)
        with postgres_serving(recording) as address:
            yield Served(address, recording, tmp_path / "patients.ledger")


def test_what_is_described_ten_times_and_executed_once_is_charged_once(served: Served) -> None:
    with raw_client(served.address) as client:
        client.log_in()
        client.ask(parse(BY_SEX, "s"), *[describe("S", "s")] * 5, SYNC)
        client.ask(bind("", "s"), *[describe("P")] * 5, SYNC)
        assert served.n_charges == 0
        found = client.ask(bind("", "s"), describe("P"), execute(), SYNC)
        assert tags(found).startswith("2TD")
    assert served.n_charges == 1


def test_a_portal_executed_in_pieces_is_one_answer(served: Served) -> None:
    with raw_client(served.address) as client:
        client.log_in()
        found = client.ask(parse(BY_SEX), bind(), execute("", 1), execute("", 1), execute(), SYNC)
        whole = client.ask(query(BY_SEX))
        assert tags(found) == "12DsDsDCZ"
        in_pieces = [reply.values for reply in found if reply.tag == "D"]
        assert in_pieces == [reply.values for reply in whole if reply.tag == "D"]
    assert len(served.engine.receipts) == 2  # the portal's, and that of the whole
    assert served.n_charges == 1


def test_a_portal_that_is_executed_again_has_nothing_more_to_give(served: Served) -> None:
    with raw_client(served.address) as client:
        client.log_in()
        found = client.ask(parse(BY_SEX), bind(), execute(), execute(), execute(), SYNC)
        assert tags(found) == "12DDDCCCZ"
    assert len(served.engine.receipts) == 1
    assert served.n_charges == 1


def test_a_client_that_hangs_up_before_its_answer_begins_is_not_charged(served: Served) -> None:
    served.engine.may_begin.clear()
    with raw_client(served.address) as client:
        client.log_in()
        client.send(query(BY_SEX))
        assert served.engine.before.wait(20)
    served.engine.may_begin.set()
    assert soon(lambda: not threads_of_clients())
    assert served.n_charges == 0
    assert asked_again(served) == 1


def test_a_client_that_hangs_up_later_has_paid_and_asks_again_for_nothing(served: Served) -> None:
    served.engine.may_end.clear()
    with raw_client(served.address) as client:
        client.log_in()
        client.send(query(BY_SEX))
        assert served.engine.after.wait(20)
    served.engine.may_end.set()
    assert soon(lambda: not threads_of_clients())
    assert served.n_charges == 1
    assert asked_again(served) == 1
    assert served.engine.receipts[1] == 0


@pytest.mark.parametrize("is_paid", [False, True])
def test_a_cancel_stops_what_is_not_paid_and_nothing_else(served: Served, is_paid: bool) -> None:
    stage = served.engine.after if is_paid else served.engine.before
    gate = served.engine.may_end if is_paid else served.engine.may_begin
    gate.clear()
    with raw_client(served.address) as client:
        (key,) = (reply.body for reply in client.log_in() if reply.tag == "K")
        client.send(query(BY_SEX))
        assert stage.wait(20)
        cancel(served.address, *struct.unpack("!iI", key))
        gate.set()
        found = client.until_ready()
        assert ("D" in tags(found)) == is_paid
        assert [reply.fields["C"] for reply in found if reply.tag == "E"] == (
            [] if is_paid else ["57014"]
        )
    assert served.n_charges == is_paid
    assert asked_again(served) == 1


def cancel(address: str, process: int, key: int) -> None:
    """Ask for a connection's statement to be stopped, and wait until that was read."""
    with raw_client(address) as other:
        other.send(struct.pack("!iiiI", 16, 80877102, process, key))
        assert other.rest() == []


def asked_again(served: Served) -> int:
    """How many charges there are once the question was asked again, and answered."""
    with raw_client(served.address) as client:
        answered(client)
    return served.n_charges


def answered(client: RawClient) -> None:
    client.log_in()
    assert "D" in tags(client.ask(query(BY_SEX)))


def threads_of_clients() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "tacit-postgres-client"]
