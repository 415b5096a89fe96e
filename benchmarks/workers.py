"""Two workers beside one: answers a second, and what a worker's death costs.

    python -m benchmarks.workers [--quick]

The load of `benchmarks.load`, 32 clients that ask the Adult table three free answers for a paid
one, with a ledger in SQLite, three times: for a server of one process, for one of two workers, and
for one of two workers of which one is killed (SIGKILL) half way. The clients have a connection
each, and the system spreads these by chance.

Without a death, no call may fail, and receipts, `GetBudget` and the audit of the ledger have to
agree to the last unit. With one, calls that break with their connection are not failures: their
clients reconnect and go on. They are counted, and are all that may be without a receipt: so the
audit may find more spent than receipts say, by what these calls had charged, and never less. Every
charge has to be measured in the end, and the killed worker's place filled again.

The bar for two workers supposes two cores and little else on them: the clients take a share. How
much processor time the server took for an answer is among the figures, and says on a busy machine
what two workers cost beside one; and how much the clients took.
"""

import argparse
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from accountant.ledger.opening import open_reader
from benchmarks.load import (
    HEAD_START_SECONDS,
    N_DASHBOARD,
    N_FAILURES_SHOWN,
    QUICK_SECONDS,
    SECONDS,
    SEED,
    Audit,
    Served,
    asked_once,
    audited,
    configured,
    loaded,
    nothing,
    units_spent,
)
from benchmarks.load_clients import Outcome, dashboard_of, together
from benchmarks.report import Bar, progress, run
from benchmarks.serve_latency import summary
from proxy.config import settings
from tests.support.serving_workers import Workers, serving_workers

GAIN_MIN = 1.6  # of two workers over one
BROKEN = "StatusCode.UNAVAILABLE"  # a call whose connection broke


@dataclass(frozen=True, slots=True)
class Load:
    """What a server did under the load, and what its ledger says.

    `n_open` counts charges that nobody has measured; `processor_seconds` is what the server's
    processes took that were there at the beginning and at the end.
    """

    outcome: Outcome
    everything: Outcome
    audit: Audit
    units: int
    n_open: int
    seconds: float
    processor_seconds: float

    @property
    def unreceived(self) -> int:
        """What receipts say beyond what the audit does, in units."""
        return self.everything.units - self.audit.units

    @property
    def rate(self) -> float:
        """Answers a second."""
        return (len(self.outcome.free_ms) + len(self.outcome.paid_ms)) / self.seconds

    @property
    def broken(self) -> list[str]:
        """Calls that ended with their connection."""
        return [line for line in self.everything.failures if line.startswith(BROKEN)]

    @property
    def failures(self) -> list[str]:
        """Calls that failed otherwise."""
        return [line for line in self.everything.failures if not line.startswith(BROKEN)]

    def _ms_per_answer(self, seconds: float) -> float:
        return 1e3 * seconds / (self.rate * self.seconds)

    def figures(self) -> dict[str, object]:
        """For the report."""
        return {
            "answers_per_second": self.rate,
            "processor_ms_per_answer": self._ms_per_answer(self.processor_seconds),
            "clients_processor_ms_per_answer": self._ms_per_answer(self.outcome.processor_seconds),
            "free_ms": summary(self.outcome.free_ms),
            "paid_ms": summary(self.outcome.paid_ms),
            "n_entries": self.audit.n_entries,
            "n_broken_with_their_connection": len(self.broken),
            "units": {
                "receipts": self.everything.units,
                "get_budget": self.units,
                "audit": self.audit.units,
            },
            "audit_problem": self.audit.problem,
            "failures": self.failures[:N_FAILURES_SHOWN],
        }


def main() -> None:
    """Run the benchmark and print its report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="ten seconds each, the same bars")
    seconds = QUICK_SECONDS if parser.parse_args().quick else SECONDS
    one = load_on(1, seconds)
    two = load_on(2, seconds)
    bereft = load_on(2, seconds, kills=True)
    gain = two.rate / one.rate
    bars = [Bar("answers a second of two workers over one", gain, GAIN_MIN, gain >= GAIN_MIN)]
    for name, load in {"one": one, "two": two}.items():
        bars += [
            nothing(f"{name}: calls that failed", len(load.everything.failures)),
            nothing(
                f"{name}: receipts less audit, units", load.everything.units - load.audit.units
            ),
            *_bars(name, load),
        ]
    unpaid = max(0, bereft.unreceived)
    bars += [
        nothing("killed: calls that failed otherwise", len(bereft.failures)),
        nothing("killed: units that receipts say and the ledger does not", unpaid),
        *_bars("killed", bereft),
    ]
    loads = {"one": one.figures(), "two": two.figures(), "two_and_one_killed": bereft.figures()}
    run({"seconds": seconds, **loads}, bars)


def _bars(name: str, load: Load) -> list[Bar]:
    return [
        nothing(f"{name}: answers wider than asked", len(load.everything.too_wide)),
        nothing(f"{name}: problems that the audit found", int(load.audit.problem is not None)),
        nothing(f"{name}: GetBudget less audit, units", load.units - load.audit.units),
        nothing(f"{name}: charges without a measurement", load.n_open),
    ]


def load_on(n_workers: int, seconds: float, *, kills: bool = False) -> Load:
    """Start a server of so many processes, let the clients ask, and look at its ledger."""
    with TemporaryDirectory(prefix="tacit-load-") as folder:
        with _served(Path(folder), n_workers) as (served, workers):
            schema = settings.load(served.configuration).tables[0].schema
            dashboard = dashboard_of(schema, N_DASHBOARD, 0, SEED)
            first, _ = asked_once(served.addresses[0], dashboard)
            killer = threading.Timer(HEAD_START_SECONDS + seconds / 2, workers.kill_one)
            if kills:
                killer.start()
            before = _processor_seconds(workers)
            outcome = loaded(served, dashboard, seconds, 0)
            after = _processor_seconds(workers)
            if kills:
                workers.await_event("worker_serves", n_workers + 1)
            again, _ = asked_once(served.addresses[0], dashboard)
            time.sleep(1.0)  # its counters are scraped by then
            audit = audited(served.ledger)
            units = units_spent(served.addresses[0], audit.units)
        n_open = _n_open(served.ledger)
    everything = together([first, outcome, again])
    spent = sum(after[pid] - before[pid] for pid in before.keys() & after.keys())
    load = Load(outcome, everything, audit, units, n_open, seconds, spent)
    progress(f"{n_workers} workers, killed: {kills}: {load.rate:.0f} answers a second")
    return load


@contextmanager
def _served(folder: Path, n_workers: int) -> Iterator[tuple[Served, Workers]]:
    configuration, metrics = configured(folder)
    text = configuration.read_text()
    wire = '[server]\npostgres_listen = "127.0.0.1:0"'
    configuration.write_text(text.replace("[server]", wire, 1))
    with serving_workers(configuration, n_workers) as workers:
        ledger = str(folder / "demo.ledger")
        yield Served((workers.address,), configuration, ledger, metrics), workers


def _processor_seconds(workers: Workers) -> dict[int, float]:
    """What each of the server's processes has taken so far."""
    found = {}
    for pid in (workers.process.pid, *workers.pids()):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        found[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found


def _n_open(ledger: str) -> int:
    """How many charges have no measurement."""
    reader = open_reader(ledger)
    try:
        kinds = [entry.kind for entry in reader.entries_after(0)]
    finally:
        reader.close()
    return kinds.count("charge") - kinds.count("measurement")


if __name__ == "__main__":
    main()
