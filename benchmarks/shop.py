"""One day at a shop: what dashboards and analysts ask, what it costs, and whether it is right.

    python -m benchmarks.shop [--quick]

The statements of `benchmarks.shop_statements`, in an order drawn once, through the engine as it is
served: planner, history, gate, a durable ledger and CSV files. Counts are wanted to 1 % of the
records, sums to 5 % of themselves (at least 2 % of the total). What is reported:

* the epsilon of the customers beside what the Laplace mechanism with a cache of exactly repeated
  queries would have spent for the same widths, told in advance how wide they may be;
* the share of intervals that contain the answer of an engine on the same files without noise;
* a statement on the 500,000 levels of money, cold and again; the ledger's bytes for a charge; the
  audit report's bytes and seconds.
"""

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from threadpoolctl import threadpool_limits

from accountant.cost.row_cost import profile_of
from accountant.gate.opening import open_table
from accountant.ledger.entries import Tally
from accountant.ledger.opening import open_ledger
from benchmarks.report import Bar, progress, run, wants_quick
from benchmarks.shop_data import draw_shop, write_shop
from benchmarks.shop_statements import ABOUT_THE_SERVER, ANSWERED, UNANSWERABLE, Statement
from cube.encoding import fingerprint
from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import Refused
from cube.schema import Schema
from planner.measuring.weights import weight_for
from planner.workload import Wanted
from proxy.api.requests import SOURCE_PUBLIC, QueryRequest, QueryResult
from proxy.bootstrap import build
from proxy.config.settings import Settings, load
from proxy.engine.answers.results import AnsweredPart
from proxy.engine.engine import Engine
from proxy.engine.usage import UsageTallies
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.public.file import load_public_tables
from proxy.tables.private_table import ServedTable
from tests.support.fakes import NoNoise

SEED = 15
BUDGET = "50"
EXACT_BUDGET = Fraction(10**6)
N_FREE = 20
N_FREE_QUICK = 5
SHARE_OF_LAPLACE_MAX = 1 / 3
COLD_SECONDS_MAX = 1.0
FREE_MS_MAX = 10.0
CHARGE_BYTES_MAX = 4096
REPORT_BYTES_MAX = 10**6
REPORT_SECONDS_MAX = 5.0
ON_MONEY = (
    "SELECT plan, SUM(revenue) AS r FROM customers GROUP BY plan",
    "SELECT COUNT(*) AS n FROM customers WHERE revenue > 1000",
    "SELECT city, AVG(revenue) AS a FROM customers WHERE revenue >= 19.99 GROUP BY city",
    "SELECT MEDIAN(revenue) AS m FROM customers",
)


class LaplaceBeside(UsageTallies):
    """Counts what the Laplace mechanism with a cache of exactly repeated queries would spend.

    Each block of rows is bought at the widest half-width that meets the target, which nobody could
    tell that mechanism in advance where the target is a fraction of the answer; once, and again
    only if it is wanted narrower, and then anew, since that mechanism cannot raise what it has.
    """

    def __init__(self) -> None:
        super().__init__()
        self.epsilon: dict[str, Fraction] = {}
        self._bought: dict[tuple[str, str], int] = {}

    def add(self, schema: Schema, analyst: str, parts: Iterable[AnsweredPart]) -> Tally:
        """Count the answers of a statement on one table."""
        parts = list(parts)
        tally = super().add(schema, analyst, parts)
        for part in parts:
            for found, width in zip(part.aggregates, _widths(part), strict=True):
                if found.source != SOURCE_PUBLIC:
                    target = replace(found.aggregate.target, half_width=width)
                    for block in found.aggregate.blocks:
                        self._buy(schema.table, Wanted(block, target))
        return tally  # the same again costs nothing with a cache

    def _buy(self, table: str, wanted: Wanted) -> None:
        row, multiplier = wanted.block.primitive
        weight = weight_for(wanted.target, multiplier)
        key = (table, fingerprint(row))
        if weight.units <= self._bought.get(key, 0):
            return
        self._bought[key] = weight.units
        cost = Fraction(weight.units * profile_of(row).bound, UNITS_PER_EPSILON)
        self.epsilon[table] = self.epsilon.get(table, Fraction(0)) + cost


def _widths(part: AnsweredPart) -> list[float]:
    """For each linear query, the widest half-width with which every answer meets its target."""
    first = [found.aggregate.target.half_width for found in part.aggregates]
    told: dict[int, float] = {}
    for item in part.answers:
        answer = item.answer
        for place in answer.uses:
            width = first[place]
            if answer.relative is not None and answer.formula is None:
                share = answer.relative / (1 + answer.relative)
                width = max(answer.width_floor, share * float(np.abs(item.values).min()))
            told[place] = min(width, told.get(place, width))
    return [told.get(place, width) for place, width in enumerate(first)]


@dataclass(slots=True)
class DayLog:
    """How the statements of the day fared."""

    refused: list[dict[str, str]] = field(default_factory=list)
    seconds: list[tuple[float, str]] = field(default_factory=list)
    epsilons: list[tuple[float, str]] = field(default_factory=list)
    n_intervals: int = 0
    missed: list[dict[str, object]] = field(default_factory=list)


def main() -> None:
    """Live the day and report."""
    quick = wants_quick("A day of dashboards and analysts on a shop's money and dates.")
    threadpool_limits(limits=1)  # as in the served process
    shop = draw_shop()
    with TemporaryDirectory() as day, TemporaryDirectory() as cold:
        settings = load(write_shop(Path(day), shop, budget=BUDGET))
        figures, bars = a_day(settings)
        report, report_bars = what_it_left(settings)
        settings = load(write_shop(Path(cold), shop, budget=BUDGET))
        money, money_bars = on_money(settings, N_FREE_QUICK if quick else N_FREE)
    run({**figures, **report, **money}, [*bars, *report_bars, *money_bars])


def a_day(settings: Settings) -> tuple[dict[str, object], list[Bar]]:
    """All statements, once each, in an order drawn once."""
    log, laplace = DayLog(), LaplaceBeside()
    service = build(settings)
    engine = service.engine
    engine.usage = laplace
    order = np.random.default_rng(SEED).permutation(len(ANSWERED))
    with TemporaryDirectory() as folder, exact_engine(settings, Path(folder)) as exact:
        for statement in (ANSWERED[place] for place in order):
            _live(engine, exact, statement, log)
    n_right = sum(_refusal(engine, sql) == code for _, sql, code in UNANSWERABLE)
    about = [sql for sql in ABOUT_THE_SERVER if _refusal(engine, sql) is not None]
    spent = {status.table: status.spent for status in service.budgets()}
    service.close()
    share = float(spent["customers"] / laplace.epsilon["customers"])
    figures: dict[str, object] = {
        "n_statements": len(ANSWERED) + len(UNANSWERABLE),
        "refused": log.refused,
        "refused_about_the_server": about,
        "epsilon": {name: float(one) for name, one in spent.items()},
        "epsilon_of_laplace_with_a_cache": {n: float(one) for n, one in laplace.epsilon.items()},
        "dearest": sorted(log.epsilons, reverse=True)[:8],
        "slowest": sorted(log.seconds, reverse=True)[:8],
        "n_intervals": log.n_intervals,
        "missed": log.missed,
    }
    n_fine = len(ANSWERED) - len(log.refused) + n_right
    return figures, [
        Bar("statements answered, or refused with their reason", n_fine, 72, n_fine >= 72),
        Bar(
            "epsilon for customers over Laplace with an exact cache",
            share,
            SHARE_OF_LAPLACE_MAX,
            share <= SHARE_OF_LAPLACE_MAX,
        ),
    ]


def _live(engine: Engine, exact: Engine, statement: Statement, log: DayLog) -> None:
    began = time.perf_counter()
    try:
        result = engine.answer(QueryRequest(sql=statement.sql))
    except Refused as refusal:
        log.refused.append({"origin": statement.origin, "said": str(refusal)})
        progress(f"{statement.origin}: {refusal}"[:160])
        return
    log.seconds.append((time.perf_counter() - began, statement.origin))
    if result.receipt is not None:
        log.epsilons.append((float(result.receipt.epsilon_spent), statement.origin))
    _compare(result, exact.answer(QueryRequest(sql=statement.sql)), statement, log)
    progress(f"{statement.origin}: {log.seconds[-1][0]:.2f} s, {log.epsilons[-1][0]:.4f}")


def _compare(noisy: QueryResult, exact: QueryResult, statement: Statement, log: DayLog) -> None:
    """Count the intervals of the receipt that miss the answer without noise, row by row.

    Rows are compared by their keys, the columns without an interval.
    """
    if noisy.receipt is None:
        return
    columns = {column.name: column for column in noisy.receipt.columns}
    keys = [name for name in noisy.data.column_names if name not in columns]
    truth = {_row(row, keys): row for row in exact.data.to_pylist()}
    for place, row in enumerate(noisy.data.to_pylist()):
        true_row = truth.get(_row(row, keys))
        for name, column in columns.items():
            if true_row is None or true_row[name] is None or place >= len(column.low):
                continue
            log.n_intervals += 1
            value = float(true_row[name]) if isinstance(true_row[name], int | float) else None
            if value is not None and not column.low[place] <= value <= column.high[place]:
                log.missed.append({"origin": statement.origin, "column": name})


def _row(row: dict[str, object], keys: Sequence[str]) -> tuple[object, ...]:
    return tuple(row[key] for key in keys)


def _refusal(engine: Engine, sql: str) -> str | None:
    """The code with which a statement is refused, None if it is answered."""
    try:
        engine.answer(QueryRequest(sql=sql))
    except Refused as refusal:
        return refusal.code
    return None


@contextmanager
def exact_engine(settings: Settings, folder: Path) -> Iterator[Engine]:
    """An engine on the same files that adds no noise: what the answers are compared with."""
    ledger = open_ledger(folder / "exact.db")
    try:
        tables = {
            one.schema.table: ServedTable(
                one.schema,
                one.default,
                open_table(
                    ledger,
                    one.schema,
                    EXACT_BUDGET,
                    DuckDbSource(one.schema, one.read_from),
                    NoNoise(),
                ),
                one.strategy,
            )
            for one in settings.tables
        }
        yield Engine(tables, load_public_tables(settings.public))
    finally:
        ledger.close()


def what_it_left(settings: Settings) -> tuple[dict[str, object], list[Bar]]:
    """The largest charge of the day in the ledger, and the audit report."""
    path = settings.ledger.path
    if path is None:
        raise RuntimeError("the shop's ledger is a file")
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT length(body) FROM entries WHERE kind = 'charge'")
        charges = [int(length) for (length,) in found]
    page = path.with_name("report.html")
    began = time.perf_counter()
    subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "proxy", "audit", "report", str(path), "-o", str(page)],
        check=True,
        stdout=sys.stderr,
    )
    seconds, n_bytes = time.perf_counter() - began, page.stat().st_size
    return {
        "ledger": {
            "charges": len(charges),
            "largest_charge_bytes": max(charges),
            "median_charge_bytes": float(np.median(charges)),
            "bytes": path.stat().st_size,
        },
        "report": {"seconds": seconds, "bytes": n_bytes},
    }, [
        Bar(
            "largest charge, bytes",
            max(charges),
            CHARGE_BYTES_MAX,
            max(charges) <= CHARGE_BYTES_MAX,
        ),
        Bar("audit report, bytes", n_bytes, REPORT_BYTES_MAX, n_bytes <= REPORT_BYTES_MAX),
        Bar("audit report, s", seconds, REPORT_SECONDS_MAX, seconds <= REPORT_SECONDS_MAX),
    ]


def on_money(settings: Settings, n_free: int) -> tuple[dict[str, object], list[Bar]]:
    """Statements on 500,000 levels, in a process that has answered nothing before."""
    cold: dict[str, float] = {}
    free: list[float] = []
    service = build(settings)
    for sql in ON_MONEY:
        began = time.perf_counter()
        service.engine.answer(QueryRequest(sql=sql))
        cold[sql] = time.perf_counter() - began
        progress(f"cold {cold[sql]:.2f} s: {sql}")
    for sql in ON_MONEY:
        for _ in range(n_free):
            began = time.perf_counter()
            service.engine.answer(QueryRequest(sql=sql))
            free.append((time.perf_counter() - began) * 1e3)
    service.close()
    slowest, median = max(cold.values()), float(np.median(free))
    return {
        "cold_seconds": cold,
        "free_ms": {"median": median, "p95": float(np.quantile(free, 0.95))},
    }, [
        Bar(
            "slowest first answer on money, s",
            slowest,
            COLD_SECONDS_MAX,
            slowest <= COLD_SECONDS_MAX,
        ),
        Bar("median free answer on money, ms", median, FREE_MS_MAX, median <= FREE_MS_MAX),
    ]


if __name__ == "__main__":
    main()
