"""Health follows the ledger: unready while it cannot be written, ready again when it can."""

import sqlite3
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from structlog.testing import capture_logs

from accountant.gate.opening import open_table
from accountant.ledger.ledger import Ledger
from accountant.ledger.opening import open_ledger
from accountant.ledger.stores import sqlite_store
from accountant.noise.lattice_noise import SystemNoise
from cube.refusals import LedgerLost, LedgerUnavailable
from proxy.api.requests import LOCAL, BudgetStatus, QueryEngine
from proxy.engine.engine import Engine
from proxy.monitoring import service as watch_health
from proxy.monitoring import service as watch_service
from proxy.monitoring.events import Stage
from proxy.monitoring.metrics import Metrics
from proxy.monitoring.service import SILENT, LedgerWatch, Monitoring, Readiness, watching
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from proxy.tables.private_table import ServedTable
from proxy.wire.server import SERVICES, start_server
from tests.support.engine_fake import CannedEngine
from tests.support.serving import EverybodyLocal
from tests.support.worlds import DEFAULT, SCHEMA, random_rows, write_csv

CANARY = "8675309"
PATIENCE_SECONDS = 60.0
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture(autouse=True)
def _five_times_as_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger is looked at five times as often, so that tests wait a fifth as long."""
    for name in ("LOOK_SECONDS", "REFRESH_SECONDS", "RETRY_SECONDS"):
        monkeypatch.setattr(watch_health, name, getattr(watch_health, name) / 5)


class SwitchedLedger:
    """A ledger that works, fails or does not answer, as it is told."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.is_writable = True
        self.answers = threading.Event()
        self.answers.set()
        self.n_probes = self.n_refreshes = 0

    @property
    def position(self) -> tuple[int, str]:
        return 7, "digest"

    def refresh(self) -> None:
        self.n_refreshes += 1

    def probe(self) -> None:
        self.n_probes += 1
        self.answers.wait()
        self.is_writable = self.error is None
        if self.error is not None:
            raise self.error

    def fails_an_append(self, error: Exception) -> None:
        self.error, self.is_writable = error, False

    def is_mended(self) -> None:
        self.error = None


class WatchedService:
    """A service as far as it is watched."""

    def __init__(self, ledger: SwitchedLedger) -> None:
        self.ledger = ledger
        self.n_usage = self.n_signed = 0

    def budgets(self) -> tuple[BudgetStatus, ...]:
        return (BudgetStatus("people", Fraction(2), Fraction(1, 2), 3),)

    def write_usage(self) -> None:
        self.n_usage += 1

    def sign_head(self) -> None:
        self.n_signed += 1


class Watched(NamedTuple):
    service: WatchedService
    ledger: SwitchedLedger
    readiness: Readiness
    metrics: Metrics
    channel: grpc.Channel
    http: str

    def health(self, service: str) -> int:
        request = health_pb2.HealthCheckRequest(service=service)
        return int(health_pb2_grpc.HealthStub(self.channel).Check(request).status)


@contextmanager
def calling(engine: QueryEngine, monitoring: Monitoring) -> Iterator[grpc.Channel]:
    authenticator = EverybodyLocal()
    server = start_server(engine, "127.0.0.1:0", authenticator=authenticator, monitoring=monitoring)
    try:
        with grpc.insecure_channel(server.address) as channel:
            yield channel
    finally:
        server.stop()


@contextmanager
def watched(ledger: SwitchedLedger) -> Iterator[Watched]:
    metrics = Metrics(["people"])
    readiness = Readiness(SERVICES)
    monitoring = Monitoring(metrics, readiness)
    service = WatchedService(ledger)
    with (
        watching(service, metrics, readiness, "127.0.0.1:0") as http,
        calling(CannedEngine(), monitoring) as channel,
    ):
        yield Watched(service, ledger, readiness, metrics, channel, f"http://{http}")


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end, "it never came about"
        time.sleep(0.01)


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as reply:  # noqa: S310 - http
            return int(reply.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_every_service_is_unready_while_the_ledger_cannot_be_written_and_then_ready() -> None:
    services = ("", *SERVICES)
    with watched(SwitchedLedger()) as server:
        assert [server.health(service) for service in services] == [SERVING] * len(services)
        assert status(f"{server.http}/readyz") == 200
        assert value(server.metrics, "tacit_epsilon_left", table="people") == 1.5
        server.ledger.fails_an_append(LedgerUnavailable("The disk is full."))
        wait_until(lambda: not server.readiness.is_ready)
        assert [server.health(service) for service in services] == [NOT_SERVING] * len(services)
        assert status(f"{server.http}/readyz") == 503
        assert status(f"{server.http}/healthz") == 200
        wait_until(lambda: value(server.metrics, "tacit_ledger_writable") == 0)
        assert TacitStub(server.channel).ListTables(tacit_pb2.ListTablesRequest()).tables
        server.ledger.is_mended()
        wait_until(lambda: server.readiness.is_ready)
        assert [server.health(service) for service in services] == [SERVING] * len(services)
        assert status(f"{server.http}/readyz") == 200
        wait_until(lambda: value(server.metrics, "tacit_ledger_writable") == 1)


def test_health_is_asked_and_not_watched() -> None:
    """A watch is a stream without end, for which nobody shows a credential."""
    with watched(SwitchedLedger()) as server:
        stub = health_pb2_grpc.HealthStub(server.channel)
        with pytest.raises(grpc.RpcError) as refused:
            next(stub.Watch(health_pb2.HealthCheckRequest(), timeout=PATIENCE_SECONDS))
        assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
        assert stub.Check(health_pb2.HealthCheckRequest()).status == SERVING


def test_a_failed_append_is_probed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_health, "PROBE_SECONDS", 10 * PATIENCE_SECONDS)
    with watched(SwitchedLedger()) as server:
        assert server.ledger.n_probes == 1
        server.ledger.fails_an_append(LedgerUnavailable("The disk is full."))
        wait_until(lambda: not server.readiness.is_ready)


def test_an_append_that_failed_once_and_works_again_is_no_reason_to_be_unready() -> None:
    with watched(SwitchedLedger()) as server, capture_logs() as lines:
        before = server.ledger.n_probes
        server.ledger.is_writable = False  # the probe finds it well
        wait_until(lambda: server.ledger.n_probes > before)
        wait_until(lambda: server.ledger.is_writable)
    assert [line["event"] for line in lines] == []


def test_an_idle_ledger_is_probed_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_health, "PROBE_SECONDS", 0.3)
    with watched(SwitchedLedger()) as server:
        server.ledger.error = LedgerUnavailable("Nobody has appended, so nobody has noticed.")
        wait_until(lambda: not server.readiness.is_ready)


def test_what_others_append_is_taken_in_again_and_again() -> None:
    with watched(SwitchedLedger()) as server:
        before = server.ledger.n_refreshes
        wait_until(lambda: server.ledger.n_refreshes > before + 1)


class LostLedger(SwitchedLedger):
    """Can be written, but holds no longer what it held."""

    def refresh(self) -> None:
        super().refresh()
        if self.n_refreshes > 1:
            raise LedgerLost("It does not hold what it held.")


def test_a_ledger_that_cannot_be_read_makes_the_server_unready() -> None:
    with watched(LostLedger()) as server, capture_logs() as lines:
        wait_until(lambda: not server.readiness.is_ready)
    (line,) = [line for line in lines if line["event"] == "unready"]
    assert line["code"] == "ledger_lost"


def test_a_ledger_that_never_answers_makes_the_server_unready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch_health, "PROBE_SECONDS", 0.3)
    monkeypatch.setattr(watch_health, "SILENCE_SECONDS_MAX", 0.5)
    with watched(SwitchedLedger()) as server, capture_logs() as lines:
        server.ledger.answers.clear()
        wait_until(lambda: not server.readiness.is_ready)
        server.ledger.answers.set()
        wait_until(lambda: server.readiness.is_ready)
    news = [(line["event"], line.get("code")) for line in lines]
    assert news == [("unready", SILENT), ("ready", None)]


def test_an_unexpected_error_ends_no_thread_and_shows_no_text() -> None:
    with watched(SwitchedLedger()) as server, capture_logs() as lines:
        server.ledger.fails_an_append(ZeroDivisionError(CANARY))
        wait_until(lambda: not server.readiness.is_ready)
        server.ledger.is_mended()
        wait_until(lambda: server.readiness.is_ready)
    assert [(line["event"], line.get("code")) for line in lines] == [
        ("unready", "ZeroDivisionError"),
        ("ready", None),
    ]
    assert CANARY not in str(lines)


def test_trouble_that_goes_on_is_logged_once() -> None:
    with watched(SwitchedLedger()) as server, capture_logs() as lines:
        server.ledger.fails_an_append(LedgerUnavailable("The disk is full."))
        before = server.ledger.n_probes
        wait_until(lambda: server.ledger.n_probes > before + 2)
    assert [line["event"] for line in lines] == ["unready"]


def test_what_else_cannot_be_done_is_no_reason_to_be_unready_and_logged_once() -> None:
    ledger, readiness = SwitchedLedger(), Readiness(SERVICES)
    n_tries = 0

    def keep_up(_is_sound: bool) -> None:
        nonlocal n_tries
        n_tries += 1
        raise ZeroDivisionError(CANARY)

    with capture_logs() as lines, LedgerWatch(ledger, readiness, keep_up):
        wait_until(lambda: n_tries > 2)
        assert readiness.is_ready
    assert [(line["event"], line.get("code")) for line in lines] == [
        ("ready", None),
        ("upkeep_failed", "ZeroDivisionError"),
    ]


def test_usage_is_written_and_the_head_signed_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch_service, "TALLY_SECONDS", 0.5)
    with watched(SwitchedLedger()) as server:
        wait_until(lambda: server.service.n_usage > 1)
        wait_until(lambda: server.service.n_signed > 1)


def test_no_tally_is_written_to_a_ledger_in_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_service, "TALLY_SECONDS", 0.0)
    with watched(SwitchedLedger()) as server:
        server.ledger.fails_an_append(LedgerUnavailable("The disk is full."))
        wait_until(lambda: not server.readiness.is_ready)
        before = server.service.n_usage
        n_probes = server.ledger.n_probes
        wait_until(lambda: server.ledger.n_probes > n_probes + 2)
        assert server.service.n_usage == before


def test_a_server_that_stops_is_unready_for_good() -> None:
    readiness = Readiness(SERVICES, is_ready=True)
    readiness.end()
    readiness.set(None)
    assert not readiness.is_ready


def test_a_watch_ends_though_its_ledger_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_health, "PROBE_SECONDS", 0.1)
    ledger = SwitchedLedger()
    with LedgerWatch(ledger, Readiness(SERVICES), lambda _: None):
        ledger.answers.clear()
        before = ledger.n_probes
        wait_until(lambda: ledger.n_probes > before)
    ledger.answers.set()


class PeopleService:
    """A whole service on a table of people: ledger, gate, source and engine are the real ones."""

    def __init__(self, folder: Path, ledger: Ledger, metrics: Metrics) -> None:
        path = write_csv(folder / "people.csv", random_rows(500))
        source = DuckDbSource(SCHEMA, SourceLocation(path=path))
        gate = open_table(ledger, SCHEMA, Fraction(4), source, SystemNoise())
        table = ServedTable(SCHEMA, DEFAULT, gate, watcher=metrics)
        self.ledger = ledger
        self.engine = Engine({SCHEMA.table: table}, watcher=metrics)

    def budgets(self) -> tuple[BudgetStatus, ...]:
        return self.engine.budgets(LOCAL)

    def write_usage(self) -> None:
        self.engine.usage.write(self.ledger)

    def sign_head(self) -> None:
        """It has no key for that."""


def count(channel: grpc.Channel, condition: str) -> float:
    """Ask for a count; what it cost, in epsilon."""
    sql = f"SELECT COUNT(*) FROM people WHERE {condition}"  # noqa: S608 - a test's own words
    replies = list(TacitStub(channel).Query(tacit_pb2.QueryRequest(sql=sql)))
    return replies[-1].receipt.epsilon_spent


def test_while_somebody_holds_the_ledger_history_answers_and_nothing_is_bought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_store, "BUSY_SECONDS", 0.2)
    metrics, readiness = Metrics(["people"]), Readiness(SERVICES)
    monitoring = Monitoring(metrics, readiness)
    path = tmp_path / "people.ledger"
    with open_ledger(path) as ledger:
        service = PeopleService(tmp_path, ledger, metrics)
        with (
            watching(service, metrics, readiness, None),
            calling(service.engine, monitoring) as channel,
        ):
            paid = count(channel, "age >= 40")
            with sqlite3.connect(path, isolation_level=None) as other:
                other.execute("BEGIN IMMEDIATE")
                with pytest.raises(grpc.RpcError, match="ledger_unavailable"):
                    count(channel, "visits >= 3")
                wait_until(lambda: not readiness.is_ready)
                assert count(channel, "age >= 40") == 0
                other.execute("ROLLBACK")
            other.close()
            wait_until(lambda: readiness.is_ready)
            paid += count(channel, "visits >= 3")
            wait_until(lambda: value(metrics, "tacit_epsilon_left", table="people") == 4 - paid)
    assert value(metrics, "tacit_answers_total", table="people", kind="paid") == 2
    assert value(metrics, "tacit_answers_total", table="people", kind="free") == 1
    assert value(metrics, "tacit_refusals_total", code="ledger_unavailable") == 1
    assert value(metrics, "tacit_purchases_in_flight") == 0
    assert value(metrics, "tacit_ledger_writable") == 1
    for stage in set(Stage) - {Stage.WAIT}:  # there was nobody to wait for
        assert (value(metrics, "tacit_stage_seconds_count", stage=stage) or 0) >= 2
