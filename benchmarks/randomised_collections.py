"""A hundred thousand answers to a collection, with kills: none is lost, none counted twice.

    python -m benchmarks.randomised_collections [--quick]

One `tacit serve` process has a collection of three attributes, asked about in pairs at epsilon 2.
Respondents are threads of processes of their own (`benchmarks.random_respondents`): half of them
speak gRPC, half the HTTP endpoint of web pages. Each has a token, draws an answer as a respondent's
device does, and sends it until it is acknowledged; one in twenty sends it once more after that. The
server is killed (SIGKILL) at random moments, a dozen times, and started again on the same ports.

Afterwards four numbers have to be the same: respondents, acknowledgements, what the server says was
counted, and what the audit of the ledger says. The counts of every cell of every combination have
to be those of the answers that were sent.

Before that, each wire is measured alone and without kills, by a tenth as many respondents. The
server's processor time leaves out its starts; respondents take the rest of the machine, and their
processor time is among the figures. An outage is a time in which nobody got an acknowledgement.
"""

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import grpc

from accountant.auditor.verdict import Verdict
from accountant.auditor.verify import verify
from accountant.ledger.credentials import EVERY_TABLE, Role
from accountant.ledger.opening import open_reader
from benchmarks.load import nothing
from benchmarks.random_respondents import Respondents, Sent, Wire, taking_part, together
from benchmarks.report import Bar, progress, run, wants_quick
from benchmarks.serve_latency import summary
from cube.measurement import UNITS_PER_EPSILON
from local_dp.campaign import (
    Attribute,
    Campaign,
    campaign_digest,
    campaign_text,
    designed_views,
    planned_campaign,
)
from proxy.admin.ledger_admin import open_configured
from proxy.collections.store import CountStore
from proxy.config.settings import load
from proxy.identity.issuing import Grant, issue_token
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from tests.support.serving_workers import command

NAME = "survey"
EPSILON = 2
ATTRIBUTES = (
    Attribute("education", ("none", "school", "degree")),
    Attribute("smokes", (False, True)),
    Attribute("region", (1, 2, 3, 4)),
)
N_PROCESSES_EACH = 2  # of each wire
N_THREADS = 8  # of each process: on each wire as many respondents at once as gRPC has slots for
N_KILLS = 12
QUICK_N_KILLS = 2
SECONDS_BETWEEN_KILLS = (1.0, 5.0)  # while it serves
QUICK_SECONDS_BETWEEN_KILLS = (0.5, 1.0)
SECONDS_TO_START_MAX = 60.0
CONFIGURATION = """\
[server]
listen = "{grpc}"
respondents_listen = "{http}"
allow_anonymous = false
[ledger]
path = "people.ledger"
[tables.people]
source = "people.csv"
budget = 1
n_records_max = 1000
half_width = 10
[tables.people.columns.sex]
kind = "category"
levels = ["Female", "Male"]
"""


@dataclass(slots=True)
class Server:
    """A server on two ports that stay its own, however often it is killed.

    `processor_seconds` is what its processes took since each of them served; `restart_seconds` is
    how long they took to serve again, after each kill.
    """

    configuration: Path
    addresses: dict[Wire, str]
    processor_seconds: float = 0.0
    restart_seconds: list[float] = field(default_factory=list)
    _process: subprocess.Popen[str] | None = None
    _before: float = 0.0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def start(self) -> None:
        """Start it, and wait until it serves."""
        with self.configuration.with_name("server.log").open("a") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                command(self.configuration), stdout=subprocess.PIPE, stderr=log, text=True
            )
        if not any("Ctrl-C" in line for line in self._process.stdout or ()):
            raise RuntimeError(self.configuration.with_name("server.log").read_text())
        self._before = _processor_seconds(self._process.pid)

    def end(self, how: signal.Signals) -> None:
        """End it, and wait until it is gone."""
        if self._process is None:
            return
        self.take_time()
        self._process.send_signal(how)
        self._process.communicate(timeout=SECONDS_TO_START_MAX)
        self._process = None

    def kill(self) -> None:
        """Kill it, and start it again."""
        with self._lock:
            self.end(signal.SIGKILL)
            started = time.monotonic()
            self.start()
            self.restart_seconds.append(time.monotonic() - started)

    def take_time(self) -> float:
        """Add up the processor time so far."""
        with self._lock:
            if self._process is not None:
                now = _processor_seconds(self._process.pid)
                self.processor_seconds += now - self._before
                self._before = now
            return self.processor_seconds


@dataclass(frozen=True, slots=True)
class Attended:
    """What some respondents sent, and the processor time that it took the server."""

    sent: Sent
    processor_seconds: float

    @property
    def longest_outage(self) -> float:
        """The longest time between two acknowledgements, whosoever."""
        return max((late - early for early, late in pairwise(sorted(self.sent.at))), default=0.0)

    def figures(self) -> dict[str, object]:
        """For the report."""
        n = self.sent.n_acknowledged
        return {
            "answers": n,
            "answers_a_second": n / self.sent.seconds,
            "server_processor_ms_an_answer": 1e3 * self.processor_seconds / n,
            "respondents_processor_ms_an_answer": 1e3 * self.sent.processor_seconds / n,
            "ms": summary(self.sent.ms),
            "longest_outage_seconds": self.longest_outage,
        }


def main() -> None:
    """Run the benchmark and print its report."""
    is_quick = wants_quick("answers to a collection, with kills")
    n = 5_000 if is_quick else 100_000
    between = QUICK_SECONDS_BETWEEN_KILLS if is_quick else SECONDS_BETWEEN_KILLS
    n_kills = QUICK_N_KILLS if is_quick else N_KILLS
    text = campaign_text(campaign())
    with TemporaryDirectory(prefix="tacit-collection-") as folder, serving(Path(folder)) as server:
        owner = owner_of(server)
        with owned(server, owner) as (stub, metadata):
            most = n + 2 * (n // 10)
            opened = tacit_pb2.CreateCollectionRequest(campaign=text, respondents_max=most)
            stub.CreateCollection(opened, metadata=metadata)
        alone = {}
        for place, wire in enumerate(Wire):
            alone[wire] = attended(server, text, (wire,), n + place * (n // 10), n // 10)
            progress(f"{wire} alone: {alone[wire].figures()['answers_a_second']:.0f} a second")
        with killed_again_and_again(server, between, n_kills):
            killed = attended(server, text, tuple(Wire), 0, n)
        with owned(server, owner) as (stub, metadata):
            closing_it = tacit_pb2.CloseCollectionRequest(name=NAME)
            told = stub.CloseCollection(closing_it, metadata=metadata).respondents
        server.end(signal.SIGTERM)
        sent = together([killed.sent, *(one.sent for one in alone.values())])
        verdict = audited(server)
        n_off = cells_off(server, text, sent)
    n_audited = sum(one.n_respondents or 0 for one in verdict.collections)
    n_killed = len(server.restart_seconds)
    run(
        {
            "alone": {str(wire): one.figures() for wire, one in alone.items()},
            "killed": {
                **killed.figures(),
                "kills": n_killed,
                "seconds_to_serve_again": summary(server.restart_seconds),
                "calls_that_broke": killed.sent.n_broken,
                "acknowledgements_that_were_lost": killed.sent.n_counted_before,
            },
            "n_at_once": len(Wire) * N_PROCESSES_EACH * N_THREADS,
            "sent_once_more": sent.n_again,
            "respondents": most,
            "acknowledged": sent.n_acknowledged,
            "counted": told,
            "audited": n_audited,
            "audit_problem": verdict.problem,
            "failures": sent.failures[:5],
        },
        [
            nothing("respondents less acknowledged", most - sent.n_acknowledged),
            nothing("acknowledged less counted", sent.n_acknowledged - told),
            nothing("counted less audited", told - n_audited),
            nothing("counts off those of the answers that were sent", n_off),
            nothing("answers that were sent once more and counted", sent.n_counted_again),
            nothing("problems that the audit found", int(verdict.problem is not None)),
            nothing("respondents whose call failed otherwise", len(sent.failures)),
            Bar("kills", n_killed, n_kills, n_killed == n_kills),
        ],
    )


def campaign() -> Campaign:
    """Every pair of three attributes."""
    views = designed_views([one.name for one in ATTRIBUTES], 2)
    units = EPSILON * UNITS_PER_EPSILON
    return planned_campaign(NAME, ATTRIBUTES, views, epsilon_units=units)


def attended(server: Server, text: str, wires: tuple[Wire, ...], first: int, n: int) -> Attended:
    """Let so many respondents answer, over each wire as many."""
    n_processes = len(wires) * N_PROCESSES_EACH
    ends = [first + n * place // n_processes for place in range(n_processes + 1)]
    orders = [
        Respondents(wire, server.addresses[wire], NAME, text, *numbers, N_THREADS)
        for wire, numbers in zip(wires * N_PROCESSES_EACH, pairwise(ends), strict=True)
    ]
    # Processes of their own, so that it is not the respondents' interpreter that is measured.
    with ProcessPoolExecutor(n_processes, mp_context=get_context("spawn")) as pool:
        before = server.take_time()
        sent = together(pool.map(taking_part, orders))
        return Attended(sent, server.take_time() - before)


@contextmanager
def killed_again_and_again(
    server: Server, between: tuple[float, float], n_kills: int
) -> Iterator[None]:
    """Kill the server at random moments so many times, as long as the block lasts."""
    moments, is_over = Random(7), threading.Event()  # noqa: S311 - moments of a benchmark
    failed: list[Exception] = []

    def kill() -> None:
        try:
            for _ in range(n_kills):
                if is_over.wait(moments.uniform(*between)):
                    return
                server.kill()
                progress(f"killed, and serving again after {server.restart_seconds[-1]:.1f} s")
        except Exception as error:  # noqa: BLE001 - raised again where the block ends
            failed.append(error)

    killing = threading.Thread(target=kill)
    killing.start()
    try:
        yield
    finally:
        is_over.set()
        killing.join()
    if failed:
        raise failed[0]


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A server with a small table, and a collection to come."""
    (folder / "people.csv").write_text("sex\nFemale\nMale\n")
    addresses = {wire: _free_address() for wire in Wire}
    configuration = folder / "tacit.toml"
    configuration.write_text(CONFIGURATION.format(**addresses))
    server = Server(configuration, addresses)
    server.start()
    try:
        yield server
    finally:
        with suppress(ProcessLookupError):
            server.end(signal.SIGKILL)


def owner_of(server: Server) -> str:
    """A token for whoever owns the collection."""
    grant = Grant(analyst="owner", role=Role.OWNER, tables=(EVERY_TABLE,))
    with open_configured(load(server.configuration).ledger) as ledger:
        return issue_token(ledger, grant, by="the benchmark")[1]


@contextmanager
def owned(server: Server, token: str) -> Iterator[tuple[TacitStub, tuple[tuple[str, str], ...]]]:
    """A connection of the owner's, and the metadata of its calls."""
    with grpc.insecure_channel(server.addresses[Wire.GRPC]) as channel:
        yield TacitStub(channel), (("authorization", f"Bearer {token}"),)


def audited(server: Server) -> Verdict:
    """What the auditor says of the ledger."""
    with closing(open_reader(str(server.configuration.with_name("people.ledger")))) as reader:
        return verify(reader.entries_after(0))


def cells_off(server: Server, text: str, sent: Sent) -> int:
    """By how much the counts of all cells differ from the answers that were sent."""
    path = server.configuration.with_name("people.ledger.collections")
    with closing(CountStore(path)) as store:
        counts = store.counts(campaign_digest(text))
    found = 0
    for place, one in enumerate(campaign().combinations):
        counted = counts.of(place, one.channel.n_tallies)
        for cell, count in enumerate(counted.tolist()):
            found += abs(count - sent.cells[place, cell])
        answered = sum(n for (combination, _), n in sent.cells.items() if combination == place)
        found += abs(counts.n_answers.get(place, 0) - answered)
    return found


def _free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return f"127.0.0.1:{found.getsockname()[1]}"


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
