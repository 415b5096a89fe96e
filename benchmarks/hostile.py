"""The worst statements known, from one analyst, beside an honest one's free counts.

    python -m benchmarks.hostile [--quick]

`tacit serve` serves the Adult table to two analysts. Bob repeatedly queries a dashboard of counts
that were bought before, and others that follow from them. At the same time Mallory sends statements
that were slow, large or endless once, or are the most work among those that are answered
(`benchmarks.hostile_statements`), and a few that make no sense on a table this small: first one at
a time, to time each separately, then from sixteen threads at once, as fast as they are answered or
refused.

A statement may take ten seconds; the bar allows one more for code that cannot be interrupted. The
figures are the largest growth of the server's memory, the 95th percentile of the times of Bob's
counts, and whether every charge to Mallory has a receipt.
"""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import grpc
import numpy as np

from accountant.ledger.opening import open_reader
from benchmarks.hostile_statements import COUNTED, FREE, PLANNED, REFUSED, SERVED
from benchmarks.load_clients import UNITS_PER_EPSILON
from benchmarks.report import Bar, progress, run, wants_quick
from benchmarks.serve_latency import summary
from examples.adult.demo import ADDRESS, prepare
from proxy.admin.ledger_admin import open_configured
from proxy.config.settings import load
from proxy.identity.issuing import Grant, issue_token
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub

STATEMENT_SECONDS: Final = 10.0
OVER_SECONDS_MAX: Final = 1.0
MEMORY_MAX: Final = 2**30
HONEST_P95_MS_MAX: Final = 100.0
N_THREADS: Final = 16
FLOOD_SECONDS: Final = 60.0
QUICK_FLOOD_SECONDS: Final = 15.0
QUICK_EVERY: Final = 3  # of the statements one at a time
N_SLOWEST: Final = 8
GLANCE_SECONDS: Final = 0.1
CALL_SECONDS: Final = 120.0
HONEST: Final = tuple(
    [f"{COUNTED} WHERE age >= {age}" for age in range(20, 80, 4)]
    + [f"{COUNTED} WHERE hours_per_week < {hours}" for hours in range(20, 60, 4)]
    + ["SELECT sex, COUNT(*) FROM adult GROUP BY sex", "SELECT COUNT(*) FROM adult"]
)
FOLLOWS: Final = "SELECT COUNT(*) / {}.0 + 1 FROM adult WHERE age >= 40"  # never asked, yet known


@dataclass(slots=True)
class Sent:
    """What came of a client's statements: the name, the seconds and the code of each."""

    answers: list[tuple[str, float, str]] = field(default_factory=list)
    units: int = 0

    def seconds(self) -> list[float]:
        """How long each took."""
        return [seconds for _, seconds, _ in self.answers]


class Client:
    """A connection of one analyst.

    Parameters
    ----------
    address, token : str
    """

    def __init__(self, address: str, token: str) -> None:
        self._stub = TacitStub(grpc.insecure_channel(address))
        self._metadata = (("authorization", f"Bearer {token}"),)

    def ask(self, name: str, sql: str, sent: Sent) -> None:
        """Send a statement, and note what came of it."""
        started = time.perf_counter()
        code = "answered"
        try:
            replies = list(
                self._stub.Query(
                    tacit_pb2.QueryRequest(sql=sql), metadata=self._metadata, timeout=CALL_SECONDS
                )
            )
            spent = sum(Fraction(one.receipt.epsilon_spent or 0) for one in replies)
            sent.units += int(spent * UNITS_PER_EPSILON)
        except grpc.RpcError as error:
            trailers = {one.key: str(one.value) for one in error.trailing_metadata() or ()}
            code = trailers.get("tacit-code", error.code().name)
            sent.units += int(Fraction(trailers.get("tacit-epsilon", "0")) * UNITS_PER_EPSILON)
        sent.answers.append((name, time.perf_counter() - started, code))


@dataclass(frozen=True, slots=True)
class Served:
    """A server: where it is, its process, its ledger, and the tokens of two analysts."""

    address: str
    pid: int
    ledger: Path
    honest: str
    hostile: str


def main() -> None:
    """Run the benchmark and print its report."""
    quick = wants_quick(__doc__ or "")
    statements = {name: sql for name, (_, sql) in REFUSED.items()} | PLANNED | SERVED | FREE
    with TemporaryDirectory(prefix="tacit-hostile-") as folder, served(Path(folder)) as server:
        honest, hostile = (
            Client(server.address, server.honest),
            Client(server.address, server.hostile),
        )
        bought = Sent()
        for sql in HONEST:
            honest.ask(sql, sql, bought)
        before = memory(server.pid)
        alone = beside(honest, lambda: time.sleep(3.0))
        progress(f"alone: {summary_ms(alone)}")
        one_by_one, most = Sent(), [before]
        with watched(server.pid, most):
            calm = beside(
                honest, lambda: each(hostile, statements, one_by_one, QUICK_EVERY if quick else 1)
            )
            progress(f"one at a time: {summary_ms(calm)}")
            flood = Sent()
            seconds = QUICK_FLOOD_SECONDS if quick else FLOOD_SECONDS
            flooded = beside(honest, lambda: together(server, statements, flood, seconds))
            progress(f"sixteen at once: {summary_ms(flooded)}")
        charged = charged_to(server.ledger, "mallory")
    report(before, max(most), (alone, calm, flooded), (one_by_one, flood), charged)


def report(
    before: int,
    most: int,
    honest: tuple[Sent, Sent, Sent],
    hostile: tuple[Sent, Sent],
    charged: int,
) -> None:
    """Print the figures, and whether the bars hold."""
    alone, calm, flooded = honest
    one_by_one, flood = hostile
    codes = [code for sent in hostile for _, _, code in sent.answers]
    grown = max(0, most - before)
    longest = max(one_by_one.seconds() + flood.seconds())
    limit = STATEMENT_SECONDS + OVER_SECONDS_MAX
    p95 = float(np.percentile(flooded.seconds(), 95)) * 1000
    refused = sum(code not in {"ok", "answered"} for _, _, code in alone.answers + calm.answers)
    unpaid = charged - one_by_one.units - flood.units
    figures = {
        "n_statements": len(one_by_one.answers),
        "n_in_the_flood": len(flood.answers),
        "codes": {code: codes.count(code) for code in sorted(set(codes))},
        "slowest_one_at_a_time": slowest(one_by_one),
        "slowest_in_the_flood": slowest(flood),
        "honest_ms": {
            "alone": summary_ms(alone),
            "beside_one_at_a_time": summary_ms(calm),
            "beside_sixteen_at_once": summary_ms(flooded),
        },
        "memory_before": before,
        "memory_grown": grown,
    }
    run(
        figures,
        [
            Bar("longest statement, s", longest, limit, longest <= limit),
            Bar("memory grown, bytes", grown, MEMORY_MAX, grown < MEMORY_MAX),
            Bar(
                "honest counts in the flood, p95 ms",
                p95,
                HONEST_P95_MS_MAX,
                p95 < HONEST_P95_MS_MAX,
            ),
            Bar("honest counts refused", refused, 0, not refused),
            Bar("charged without an answer, units", unpaid, 0, not unpaid),
        ],
    )


def slowest(sent: Sent) -> list[str]:
    """The statements that took the longest, and what came of them."""
    answers = sorted(sent.answers, key=lambda one: -one[1])[:N_SLOWEST]
    return [f"{seconds:.2f} s, {code}: {name}" for name, seconds, code in answers]


def each(client: Client, statements: dict[str, str], sent: Sent, every: int) -> None:
    """Send one statement after the other."""
    for name, sql in itertools.islice(statements.items(), 0, None, every):
        client.ask(name, sql, sent)
        progress(f"  {sent.answers[-1][1]:6.2f} s  {sent.answers[-1][2]:20} {name}")


def together(server: Served, statements: dict[str, str], sent: Sent, seconds: float) -> None:
    """Send them from many threads at once, again and again."""
    end = time.monotonic() + seconds
    turns = itertools.cycle(statements.items())
    lock = threading.Lock()

    def send() -> Sent:
        client, own = Client(server.address, server.hostile), Sent()
        while time.monotonic() < end:
            with lock:
                name, sql = next(turns)
            client.ask(name, sql, own)
        return own

    with ThreadPoolExecutor(N_THREADS) as pool:
        for one in [pool.submit(send) for _ in range(N_THREADS)]:
            own = one.result()
            sent.answers += own.answers
            sent.units += own.units


def beside(client: Client, work: Callable[[], None]) -> Sent:
    """What the honest analyst's counts took while something else went on."""
    sent, over = Sent(), threading.Event()

    def look() -> None:
        for number in itertools.count(2):
            for sql in HONEST:
                if over.is_set():
                    return
                client.ask("again", sql, sent)
            client.ask("follows", FOLLOWS.format(number), sent)

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        try:
            work()
        finally:
            over.set()
        looking.result()
    return sent


def summary_ms(sent: Sent) -> dict[str, float]:
    """The times of a client's statements, in milliseconds."""
    return summary([seconds * 1000 for seconds in sent.seconds()])


def memory(pid: int) -> int:
    """The memory of a process and what those that it started have for themselves, in bytes."""
    own = _memory_of(pid, "VmRSS")
    return own + sum(_memory_of(child, "RssAnon") for child in _children(pid))


def _memory_of(pid: int, what: str) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:  # it has ended
        return 0
    found = re.search(rf"{what}:\s+([0-9]+) kB", status)
    return int(found[1]) * 1024 if found else 0


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, path.read_text(encoding="ascii").split())
    return found


@contextmanager
def watched(pid: int, seen: list[int]) -> Iterator[None]:
    """Note the memory of a process until the block is left."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(GLANCE_SECONDS):
            seen.append(memory(pid))

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        try:
            yield
        finally:
            over.set()
            looking.result()


def charged_to(ledger: Path, analyst: str) -> int:
    """What the ledger says was charged to an analyst, in units."""
    reader = open_reader(str(ledger))
    try:
        bodies = [json.loads(one.body) for one in reader.entries_after(0) if one.kind == "charge"]
    finally:
        reader.close()
    return sum(
        body["units_after"] - body["units_before"] for body in bodies if body["analyst"] == analyst
    )


def countries() -> str:
    """A public table of a thousand rows."""
    rows = (f"country {place} {'a' * (place % 40)},{place * 1000}" for place in range(1000))
    return "\n".join(["country,population", *rows, ""])


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    """The Adult table, served with a large budget to two analysts."""
    path = prepare(folder)
    path.write_text(re.sub(r"(?m)^budget = .*$", 'budget = "100"', path.read_text()))
    (path.parent / "countries.csv").write_text(countries(), encoding="utf-8")
    with path.open("a", encoding="utf-8") as file:
        file.write('\n[public.countries]\nsource = "countries.csv"\nkey = "country"\n')
    settings = load(path)
    with open_configured(settings.ledger) as ledger:
        tokens = [
            issue_token(ledger, Grant(analyst=name, tables=("adult",)), by="the benchmark")[1]
            for name in ("bob", "mallory")
        ]
    command = [sys.executable, "-m", "proxy", "serve", str(path)]
    with (
        (folder / "server.log").open("w") as log,
        subprocess.Popen(  # noqa: S603 - our own command on our own file
            command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ}
        ) as process,
    ):
        try:
            address = next(filter(None, map(ADDRESS.search, process.stdout or ())), None)
            if address is None or settings.ledger.path is None:
                raise RuntimeError("the server stopped")
            yield Served(address[1], process.pid, settings.ledger.path, *tokens)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


if __name__ == "__main__":
    main()
