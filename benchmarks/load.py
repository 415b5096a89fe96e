"""Thirty-two clients at once: throughput of free and paid answers, with every unit accounted for.

    python -m benchmarks.load [--quick] [--replicas] [--topics N]

One `tacit serve` process serves the Adult table with a large budget and its ledger in SQLite. Two
processes of sixteen clients each (`benchmarks.load_clients`) ask it for a minute through gRPC, each
client one statement after the other: three free answers, most of them from a dashboard of 200
statements that was asked once before the clock started, for one that has to be measured.

Afterwards the receipts of all answers, the server's `GetBudget` and the audit of the ledger have to
agree to the last unit of 2**-40 epsilon.

With `--replicas`, four processes serve the table from one PostgreSQL ledger, and the clients are
spread over them. Then all four, and the audit, have to agree on what was spent. Their answers to
one statement need not be the same number: each server estimates from the history it had read at the
first query, and all answers meet their targets. How many differ is among the figures.
"""

import argparse
import re
import socket
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from prometheus_client.parser import text_string_to_metric_families

from accountant.auditor.verify import verify
from accountant.ledger.opening import open_reader
from benchmarks.load_clients import (
    UNITS_PER_EPSILON,
    Orders,
    Outcome,
    Statement,
    ask,
    connected,
    dashboard_of,
    run_clients,
    together,
)
from benchmarks.report import Bar, progress, run
from benchmarks.serve_latency import summary
from examples.adult.demo import prepare, serving
from proxy.config import settings
from proxy.protocol import tacit_pb2

N_PROCESSES = 2
N_THREADS = 16  # of each process
N_REPLICAS = 4
N_DASHBOARD = 200
SHARE_OF_PAID = 0.25
SECONDS = 60.0
QUICK_SECONDS = 10.0
HEAD_START_SECONDS = 6.0  # for the processes to load, and to connect
AGREE_SECONDS_MAX = 30.0  # a replica looks for what others have bought once a second
BUDGET = "4096"  # as much as may be declared; a double holds every sum of units exactly
FREE_PER_SECOND_MIN = 300.0
PAID_PER_SECOND_MIN = 100.0
N_FAILURES_SHOWN = 5
SEED = 5


@dataclass(frozen=True, slots=True)
class Served:
    """Servers of one ledger: their addresses, a configuration of one, where the ledger lies.

    `metrics` is where the first of them tells its metrics.
    """

    addresses: tuple[str, ...]
    configuration: Path
    ledger: str
    metrics: str


@dataclass(frozen=True, slots=True)
class Audit:
    """What the ledger says, by the auditor's own arithmetic."""

    n_entries: int
    units: int
    problem: str | None


def main() -> None:
    """Run the benchmark and print its report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="ten seconds, the same bars")
    parser.add_argument("--replicas", action="store_true", help="four servers on PostgreSQL")
    parser.add_argument("--topics", type=int, default=0, help="besides the four charts; try 24")
    asked = parser.parse_args()
    seconds = QUICK_SECONDS if asked.quick else SECONDS
    serve = replicas if asked.replicas else one_server
    with TemporaryDirectory(prefix="tacit-load-") as folder, serve(Path(folder)) as served:
        schema = settings.load(served.configuration).tables[0].schema
        dashboard = dashboard_of(schema, N_DASHBOARD, asked.topics, SEED)
        first, _ = asked_once(served.addresses[0], dashboard)
        progress(f"asked {N_DASHBOARD} statements, {len(first.paid_ms)} of them paid")
        load = loaded(served, dashboard, seconds, asked.topics)
        stages = stage_seconds(served.metrics)
        progress(f"{len(load.free_ms)} free and {len(load.paid_ms)} paid answers")
        again = [asked_once(address, dashboard) for address in served.addresses]
        audit = audited(served.ledger)
        budgets = [units_spent(address, audit.units) for address in served.addresses]
    outcome = together([first, load, *(one for one, _ in again)])
    relations = [relation for _, relation in again]
    n_differing = sum(len(set(answers)) > 1 for answers in zip(*relations, strict=True))
    figures = {
        "n_servers": len(served.addresses),
        "n_clients": N_PROCESSES * N_THREADS,
        "seconds": seconds,
        "n_topics": asked.topics,
        "n_entries": audit.n_entries,
        "n_paid_again": _n_paid(again),
        "n_answered_in_several_ways": n_differing,
        "free_ms": summary(load.free_ms),
        "paid_ms": summary(load.paid_ms),
        "stage_seconds_at_most": stages,
        "units": {"receipts": outcome.units, "get_budget": budgets, "audit": audit.units},
        "audit_problem": audit.problem,
        "failures": outcome.failures[:N_FAILURES_SHOWN],
        "too_wide": outcome.too_wide[:N_FAILURES_SHOWN],
    }
    run(
        figures,
        [
            nothing("calls that failed", len(outcome.failures)),
            nothing("answers wider than asked", len(outcome.too_wide)),
            nothing("problems that the audit found", int(audit.problem is not None)),
            nothing("receipts less audit, units", outcome.units - audit.units),
            *(nothing("GetBudget less audit, units", units - audit.units) for units in budgets),
            *([] if asked.replicas else alone(_n_paid(again), load, seconds)),
        ],
    )


def nothing(name: str, value: int) -> Bar:
    """The claim that there is none of something."""
    return Bar(name, value, 0, value == 0)


def alone(n_paid_again: int, load: Outcome, seconds: float) -> list[Bar]:
    """The claims about one server, and about its speed on a machine to itself."""
    return [
        nothing("dashboard statements that were paid again", n_paid_again),
        *_rates(load, seconds),
    ]


def _rates(load: Outcome, seconds: float) -> list[Bar]:
    return [
        Bar(f"{name} answers a second", rate, least, rate >= least)
        for name, rate, least in (
            ("free", len(load.free_ms) / seconds, FREE_PER_SECOND_MIN),
            ("paid", len(load.paid_ms) / seconds, PAID_PER_SECOND_MIN),
        )
    ]


@contextmanager
def one_server(folder: Path) -> Iterator[Served]:
    """A server with its ledger in a file."""
    configuration, metrics = configured(folder)
    with serving(configuration) as address:
        yield Served((address,), configuration, str(folder / "demo.ledger"), metrics)


@contextmanager
def replicas(folder: Path) -> Iterator[Served]:
    """Several servers with one ledger in PostgreSQL."""
    from tests.support.postgres import serving_postgres  # noqa: PLC0415 - its driver is an extra

    with serving_postgres() as postgres, ExitStack() as stack:
        place = f'url = "{postgres.location()}"\nkey = "{folder / "ledger.key"}"'
        configuration, metrics = configured(folder, place)
        addresses = [stack.enter_context(serving(configuration))]
        # The same data for all: the ledger knows a file by its bytes.
        text = configuration.read_text().replace('source = "', 'source = "../')
        text = text.replace(f'metrics_listen = "{metrics}"', "")
        for number in range(1, N_REPLICAS):
            own = folder / str(number) / configuration.name
            own.parent.mkdir()
            own.write_text(text)
            addresses.append(stack.enter_context(serving(own)))
        yield Served(tuple(addresses), configuration, postgres.location(), metrics)


def asked_once(address: str, dashboard: Sequence[Statement]) -> tuple[Outcome, list[bytes]]:
    """Ask every statement of the dashboard; what came of it, and the rows of each answer."""
    outcome, rows = Outcome(), []
    with connected(address) as stub:
        for statement in dashboard:
            relation = ask(stub, statement, outcome)
            table = pa.ipc.open_stream(relation).read_all().replace_schema_metadata(None)
            rows.append(repr(table.to_pydict()).encode())
    return outcome, rows


def loaded(
    served: Served, dashboard: tuple[Statement, ...], seconds: float, n_topics: int
) -> Outcome:
    """Let all clients ask for a time."""
    start_at = time.time() + HEAD_START_SECONDS
    orders = [
        Orders(
            configuration=served.configuration,
            addresses=served.addresses,
            n_threads=N_THREADS,
            dashboard=dashboard,
            share_of_paid=SHARE_OF_PAID,
            start_at=start_at,
            seconds=seconds,
            n_topics=n_topics,
            seed=SEED,
            number=number,
        )
        for number in range(N_PROCESSES)
    ]
    # Processes of their own, so that it is not the clients' interpreter that is measured.
    with ProcessPoolExecutor(N_PROCESSES, mp_context=get_context("spawn")) as pool:
        return together(pool.map(run_clients, orders))


def audited(ledger: str) -> Audit:
    """What the auditor says of the ledger, beside the servers that have it open."""
    reader = open_reader(ledger)
    try:
        verdict = verify(reader.entries_after(0))
    finally:
        reader.close()
    (table,) = verdict.tables
    return Audit(verdict.n_entries, int(table.spent * UNITS_PER_EPSILON), verdict.problem)


def units_spent(address: str, expected: int) -> int:
    """What a server says was spent; it is given time to hear what others have bought."""
    end = time.monotonic() + AGREE_SECONDS_MAX
    with connected(address) as stub:
        while True:
            (budget,) = stub.GetBudget(tacit_pb2.GetBudgetRequest()).budgets
            units = int(budget.epsilon_spent * UNITS_PER_EPSILON)
            if units == expected or time.monotonic() > end:
                return units
            time.sleep(0.1)


def stage_seconds(metrics: str) -> dict[str, float]:
    """Where the server's time went, from its metrics: sums of upper edges of buckets."""
    with urllib.request.urlopen(f"http://{metrics}/metrics") as reply:
        families = text_string_to_metric_families(reply.read().decode())
    return {
        sample.labels["stage"]: sample.value
        for family in families
        for sample in family.samples
        if sample.name == "tacit_stage_seconds_sum"
    }


def configured(folder: Path, ledger: str | None = None) -> tuple[Path, str]:
    """The example, with a budget that is not used up, open to everybody on loopback.

    Its configuration, and where its metrics will be.
    """
    configuration = prepare(folder)
    with socket.create_server(("127.0.0.1", 0)) as found:
        metrics = f"127.0.0.1:{found.getsockname()[1]}"
    text = re.sub(r"(?m)^budget = .*$", f'budget = "{BUDGET}"', configuration.read_text())
    if ledger is not None:
        text = re.sub(r"(?m)^path = .*$", lambda _: ledger, text)
    text = re.sub(r"(?m)^allow_anonymous = .*\n", "", text)
    server = f'[server]\nallow_anonymous = true\nmetrics_listen = "{metrics}"'
    configuration.write_text(text.replace("[server]", server, 1))
    return configuration, metrics


def _n_paid(again: Sequence[tuple[Outcome, list[bytes]]]) -> int:
    return sum(len(outcome.paid_ms) for outcome, _ in again)


if __name__ == "__main__":
    main()
