"""Engines in one process whose data comes when a test says so: several on one ledger, if wanted.

Each has a ledger object of its own on the same file: they share nothing but the file, as two
processes would.
"""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path

from accountant.gate.gate import CellCounts, Source
from accountant.gate.opening import open_table
from accountant.grouping import Grouping
from accountant.ledger.ledger import Ledger
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from accountant.source import UnitCells
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, Caller, QueryRequest, QueryResult
from proxy.engine.engine import Engine
from proxy.monitoring.events import UNWATCHED, Watcher
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from proxy.tables.private_table import ServedTable
from tests.support.worlds import DEFAULT, SCHEMA, random_rows, write_csv

ROWS = random_rows(2000)


class SlowSource:
    """A source whose reads wait for a signal, or fail."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.may_read = threading.Event()
        self.may_read.set()
        self.is_broken = False
        self.seconds = 0.0
        self.n_reads = 0

    def fingerprint(self, key: bytes, like: str = "") -> str:
        return self.source.fingerprint(key, like)

    def rows_fingerprint(self, key: bytes, like: str = "") -> str:
        return self.source.rows_fingerprint(key, like)

    def measure(self, grouping: Grouping) -> CellCounts:
        self.n_reads += 1
        assert self.may_read.wait(30)
        time.sleep(self.seconds)
        if self.is_broken:
            raise OSError("gone")
        return self.source.measure(grouping)

    def measure_units(self, grouping: Grouping) -> UnitCells:
        return self.source.measure_units(grouping)


class Server:
    """An engine with a ledger of its own on a file."""

    def __init__(self, ledger: Ledger, rows: Path, budget: Fraction, watcher: Watcher) -> None:
        self.ledger = ledger
        self.source = SlowSource(DuckDbSource(SCHEMA, SourceLocation(path=rows)))
        self.gate = open_table(ledger, SCHEMA, budget, self.source, SystemNoise())
        self.table = ServedTable(SCHEMA, DEFAULT, self.gate, watcher=watcher)
        self.engine = Engine({SCHEMA.table: self.table})

    def ask(self, sql: str, half_width: float = 20.0, caller: Caller = LOCAL) -> QueryResult:
        target = RequestedTarget(half_width=half_width, confidence=0.95)
        return self.engine.answer(QueryRequest(sql=sql, target=target, caller=caller))

    @property
    def spent(self) -> Fraction:
        return self.engine.budgets(LOCAL)[0].spent


StartServer = Callable[..., Server]


@contextmanager
def starting(folder: Path) -> Iterator[StartServer]:
    """Start servers on one ledger; they are stopped in the end."""
    rows = write_csv(folder / "people.csv", ROWS)
    with ExitStack() as stack:

        def another(budget: Fraction = Fraction(4), watcher: Watcher = UNWATCHED) -> Server:
            ledger = stack.enter_context(open_ledger(folder / "people.ledger"))
            return Server(ledger, rows, budget, watcher)

        yield another


def epsilon(release: QueryResult) -> Fraction:
    assert release.receipt is not None
    return release.receipt.epsilon_spent


@contextmanager
def asking(server: Server, sql: str, n_threads: int) -> Iterator[list[QueryResult]]:
    """Ask in threads; once the block is left, all have answered."""
    answers: list[QueryResult] = []
    with ThreadPoolExecutor(n_threads) as pool:
        asked = [pool.submit(server.ask, sql) for _ in range(n_threads)]
        yield answers
        answers += [one.result(timeout=60) for one in asked]


def until(condition: Callable[[], bool]) -> None:
    """Wait for what other threads are about to do."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
