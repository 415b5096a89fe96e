"""How long the audit report of a large ledger takes, and whether all totals agree.

    python -m benchmarks.audit_report [--quick]

The ledger is that of the Adult table, opened by the real server and then filled with what could
have been a year: 20,000 entries, of which nearly half are charges, each of one or two blocks over
one to three columns, a fifth of them grouped, a tenth raised from an earlier measurement; by a
dozen analysts in three groups, with limits and answer counts in between.

The time is that of the whole command, `tacit audit report`, with Python's start and the
verification that it does first. The totals must be those of the verification, of the ledger as the
server reads it, and of GetBudget, to the last unit, and the server's own report the same as the
command's.
"""

import datetime as dt
import json
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import grpc
import numpy as np

from accountant.auditor.verify import verify
from accountant.ledger.entries import (
    Body,
    Entry,
    LimitSet,
    Measured,
    Served,
    Tally,
    chained_digest,
)
from accountant.ledger.entry_json import write
from accountant.ledger.limits import Limit, Payer, Subject, Window
from accountant.ledger.opening import open_ledger
from accountant.ledger.stores.sqlite_store import SqliteReader, SqliteStore
from benchmarks.made_up_charges import MadeUpCharges, Sizes
from benchmarks.report import Bar, progress, run, wants_quick
from cube.measurement import UNITS_PER_EPSILON
from cube.schema import Schema
from examples.adult.demo import issue_tokens, prepare, serving
from proxy import bootstrap
from proxy.config.settings import load
from proxy.protocol import tacit_pb2, tacit_pb2_grpc

SEED = 5
N_ENTRIES = 20_000
N_ENTRIES_QUICK = 4_000
SECONDS_MAX = 10.0
BUDGET = "1000"
N_COLUMNS_MAX = 3
N_BLOCKS_MAX = 2
N_BETWEEN_TALLIES = 200
N_BETWEEN_LIMITS = 2_000
PAYERS = tuple(Payer(f"analyst {place:02}", (f"group {place % 3}",)) for place in range(12))


class Year:
    """Bodies of entries that could have been written about a table."""

    def __init__(self, schema: Schema, rng: np.random.Generator) -> None:
        self._rng = rng
        self._charges = MadeUpCharges(schema, rng, Sizes(N_BLOCKS_MAX, N_COLUMNS_MAX))

    def bodies(self, first: int, last: int) -> Iterator[Body]:
        """What the entries with these numbers say."""
        seq = first
        while seq <= last:
            if seq % N_BETWEEN_LIMITS < 2:
                yield self._limit()
                seq += 1
            if seq % N_BETWEEN_TALLIES < 2:
                yield self._served()
                seq += 1
            charge = self._charges.charge(self._payer())
            yield charge
            yield Measured(seq, tuple(map(self._charges.values, charge.blocks)))
            seq += 2

    def _limit(self) -> LimitSet:
        subject = Subject.parse(f"analyst:{self._payer().analyst}")
        return LimitSet(Limit(subject, Fraction(900), Window.YEAR, Fraction(1)), "owner")

    def _served(self) -> Served:
        return Served(
            "2025-01-01T00:00:00.000+00:00",
            tuple(
                Tally(payer.analyst, 90, 10, 2**38, 2**35, (40, 30, 20, 9, 1)) for payer in PAYERS
            ),
        )

    def _payer(self) -> Payer:
        return PAYERS[int(self._rng.integers(len(PAYERS)))]


def write_year(path: Path, schema: Schema, n_entries: int) -> None:
    """Fill a ledger that the server has opened, as if it had been used since."""
    store = SqliteStore(path)
    with store.writing() as appender:
        *_, last = appender.entries_after(0)
        year = Year(schema, np.random.default_rng(SEED))
        bodies = year.bodies(last.seq + 1, n_entries)
        appender.insert(chained(last, bodies, schema.table))
    store.close()


def chained(last: Entry, bodies: Iterator[Body], table: str) -> Iterator[Entry]:
    """Entries that follow the last one, half an hour after each other."""
    head, now = last.digest, dt.datetime.fromisoformat(last.at)
    for seq, body in enumerate(bodies, start=last.seq + 1):
        now += dt.timedelta(minutes=26)
        kind, text = write(body)
        fields = (seq, now.isoformat(timespec="milliseconds"), kind, table, text)
        head = chained_digest(head, fields)
        yield Entry(*fields, head)


def reported(ledger: Path, output: Path) -> tuple[float, float]:
    """The seconds that the command takes to write a report, and those of a processor."""
    command = [sys.executable, "-m", "proxy", "audit", "report", str(ledger), "-o", str(output)]
    before, start = processor_seconds(), perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command
    return perf_counter() - start, processor_seconds() - before


def processor_seconds() -> float:
    """What finished child processes have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def asked(path: Path, token: str) -> tuple[Fraction, bytes]:
    """What a served process says was spent (a double holds it exactly), and its own report."""
    shown = (("authorization", f"Bearer {token}"),)
    with serving(path) as address, grpc.insecure_channel(address) as channel:
        stub = tacit_pb2_grpc.TacitStub(channel)
        reply = stub.GetBudget(tacit_pb2.GetBudgetRequest(), metadata=shown)
        chunks = stub.AuditReport(tacit_pb2.AuditReportRequest(format="json"), metadata=shown)
        report = b"".join(one.chunk for one in chunks)
    [budget] = reply.budgets
    return Fraction(budget.epsilon_spent), report


def prepared(folder: Path, n_entries: int) -> tuple[Path, str]:
    """A configuration with a ledger of so many entries, and its owner's token."""
    path = prepare(folder)
    path.write_text(re.sub(r"(?m)^budget = .*$", f'budget = "{BUDGET}"', path.read_text()))
    settings = load(path)
    [table] = settings.tables
    bootstrap.build(settings).close()
    _analyst, owner = issue_tokens(path)
    write_year(folder / "demo.ledger", table.schema, n_entries)
    return path, owner


def main() -> None:
    """Write a ledger, report on it, compare the totals, and print the figures."""
    quick = wants_quick("Seconds for the audit report of a large ledger.")
    n_entries = N_ENTRIES_QUICK if quick else N_ENTRIES
    with TemporaryDirectory(prefix="tacit-bench-") as folder:
        progress(f"writing {n_entries} entries")
        path, owner = prepared(Path(folder), n_entries)
        ledger = path.with_name("demo.ledger")
        progress("reporting")
        html, js = Path(folder) / "report.html", Path(folder) / "report.json"
        seconds = {output.suffix[1:]: reported(ledger, output) for output in (html, js)}
        [report] = json.loads(js.read_text())["tables"]
        progress("verifying, reading as the server does, asking the server")
        reader = SqliteReader(ledger)
        entries = list(reader.entries_after(0))
        reader.close()
        start = perf_counter()
        verdict = verify(entries, has_columns=True)
        verify_seconds = perf_counter() - start
        with open_ledger(ledger) as opened:
            own = Fraction(opened.history("adult").units_spent, UNITS_PER_EPSILON)
        get_budget, served = asked(path, owner)
        totals = {
            "report": Fraction(report["spent"]),
            "verify": verdict.tables[0].spent,
            "ledger": own,
            "get_budget": get_budget,
        }
        n_bytes, is_same = html.stat().st_size, served == js.read_bytes()
    figures = {
        "n_entries": len(entries),
        "n_charges": report["n_charges"],
        "seconds": {name: wall for name, (wall, _) in seconds.items()},
        "processor_seconds": {name: processor for name, (_, processor) in seconds.items()},
        "verify_seconds": verify_seconds,
        "html_kib": n_bytes / 2**10,
        "spent": {name: str(total) for name, total in totals.items()},
        "dearest_cell": {
            bound: max(float(text) for column in report["columns"] for text in column[bound])
            for bound in ("at_least", "at_most")
        },
        "problem": verdict.problem,
    }
    slowest = max(wall for wall, _ in seconds.values())
    n_totals = len(set(totals.values()))
    bars = [
        Bar("report from command to file, s", slowest, SECONDS_MAX, slowest < SECONDS_MAX),
        Bar("different totals among report, verify, ledger, GetBudget", n_totals, 1, n_totals == 1),
        Bar("the server's report is the command's, byte for byte", int(is_same), 1, is_same),
        Bar("entries found bad", int(verdict.problem is not None), 0, verdict.problem is None),
    ]
    run(figures, bars)


if __name__ == "__main__":
    main()
