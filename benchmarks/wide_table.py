"""An ordinary day on a wide table: 5,000 queries over 13 columns, then the speed of free answers.

    python -m benchmarks.wide_table [--quick]

The day runs through the engine as it is served: planner, estimator, gate, a durable ledger and the
Adult table in DuckDB. Afterwards answers that cost nothing are timed, in the engine and through
Flight SQL with the ADBC driver from a server that was restarted on the day's ledger. What the
ledger charged is compared with the cost of every cell of five columns, added up cell by cell. How
paid statements grow with the history is of processor time, and of the whole day alone.
"""

import re
import resource
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import adbc_driver_flightsql.dbapi as flight_sql
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from accountant.cost.history_cost import CostState
from accountant.ledger.opening import open_ledger
from benchmarks.dashboards import CONFIDENCE, Day
from benchmarks.report import Bar, progress, run, wants_quick
from benchmarks.serve_latency import ask, summary
from cube.measurement import UNITS_PER_EPSILON, Measurement, PlannedMeasurement
from cube.schema import Schema
from examples.adult.demo import prepare, serving
from proxy.api.requests import LOCAL, QueryRequest
from proxy.bootstrap import build
from proxy.config.settings import load
from proxy.engine.engine import Engine

SEED = 13
N_RECORDS = 48_842
BUDGET = 4_096  # the day is never cut short; what it spends is reported
N_TIMED = 500
N_EVERY = 250  # statements between two lines of progress
EARLY, LATE = range(1, 501), range(3_751, 4_251)  # statements around the 250th and the 4,000th
GROWTH_MAX = 3.0
CUT = ("age", "education_num", "income", "race", "sex")
FREE_KINDS: dict[str, Callable[[str, np.random.Generator], str]] = {
    "again": lambda sql, _: sql,
    "in_other_words": lambda sql, _: sql.replace(" AS answer", " + 0 AS answer"),
    "never_asked": lambda sql, rng: sql.replace(" AS answer", " / 2.0 + 1 AS answer").replace(
        f"confidence => {CONFIDENCE}", f"confidence => {rng.uniform(0.5, 0.9):.6f}"
    ),
}
ENGINE_P95_MS_MAX = 10.0
FLIGHT_P95_MS_MAX = 20.0
PEAK_BYTES_MAX = 1.5 * 2**30


@dataclass(slots=True)
class DayLog:
    """What happened: the time of each answer, and which of them cost something."""

    paid_ms: list[float] = field(default_factory=list)
    free_ms: list[float] = field(default_factory=list)
    paid_cpu_ms: dict[int, float] = field(default_factory=dict)  # by place in the day
    asked: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")

    def paid_among(self, places: range) -> float:
        """The median processor time of the paid statements among some of the day, in ms."""
        return float(np.median([ms for place, ms in self.paid_cpu_ms.items() if place in places]))

    @property
    def growth(self) -> float | None:
        """How many times the early time the late one is; None if the day was too short."""
        if max(self.paid_cpu_ms) < LATE.start:
            return None
        return self.paid_among(LATE) / self.paid_among(EARLY)

    def figures(self) -> dict[str, object]:
        """In numbers."""
        times = self.paid_ms + self.free_ms
        return {
            "n_statements": len(times),
            "paid_share": len(self.paid_ms) / len(times),
            "seconds": sum(times) / 1e3,
            "paid_ms": summary(self.paid_ms),
            "paid_cpu_ms_growth": self.growth,
            "free_ms": summary(self.free_ms),
            "slowest": {"ms": self.slowest[0], "sql": self.slowest[1]},
        }


def main() -> None:
    """Live the day, look at what it left, and report."""
    quick = wants_quick("Free answers, memory and cost at the end of a day on a wide table.")
    n_statements = 300 if quick else 5_000
    threadpool_limits(limits=1)  # as in the served process
    rng = np.random.default_rng(SEED)
    with TemporaryDirectory(prefix="tacit-bench-") as folder:
        path = prepare(Path(folder))
        text = re.sub(r"(?m)^budget = .*$", f'budget = "{BUDGET}"', path.read_text())
        path.write_text(text.replace("allow_anonymous = false", "allow_anonymous = true"))
        settings = load(path)
        schema = settings.tables[0].schema
        service = build(settings)
        log = live(service.engine, Day(schema, N_RECORDS, rng).statements(n_statements))
        questions = free_questions(log.asked, rng)
        in_engine = [answered(service.engine, sql) for sql in questions]
        peak_bytes = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        service.close()
        del service
        progress("the same through Flight SQL")
        start = time.perf_counter()
        with serving(path) as address:
            restart_seconds = time.perf_counter() - start
            with flight_sql.connect(f"grpc://{address}", autocommit=True) as connection:
                first_ms = [ask(connection, sql)[0] for sql in questions]
                again = free_questions(log.asked, rng)
                by_flight = [through_flight(connection, sql) for sql in again]
        served_bytes = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        cost = compared_cost(Path(settings.ledger.location), schema)
    engine_ms = [milliseconds for milliseconds, is_free in in_engine if is_free]
    flight_ms = [milliseconds for milliseconds, is_free in by_flight if is_free]
    engine_p95, flight_p95 = summary(engine_ms)["p95"], summary(flight_ms)["p95"]
    peak = max(peak_bytes, served_bytes)
    figures = {
        "day": log.figures(),
        "free_in_engine_ms": summary(engine_ms),
        "free_through_flight_sql_ms": summary(flight_ms),
        "paid_though_answered_before": {
            "in_engine": len(in_engine) - len(engine_ms),
            "through_flight_sql": len(by_flight) - len(flight_ms),
        },
        "first_after_restart_ms": summary(first_ms),
        "restart_seconds": restart_seconds,
        "peak_mib": {"day": peak_bytes / 2**20, "served_again": served_bytes / 2**20},
        "cost": cost,
    }
    bars = [
        Bar("free answer in the engine, p95 ms", engine_p95,
            ENGINE_P95_MS_MAX, engine_p95 < ENGINE_P95_MS_MAX),
        Bar("free answer through Flight SQL, p95 ms", flight_p95,
            FLIGHT_P95_MS_MAX, flight_p95 < FLIGHT_P95_MS_MAX),
        Bar("peak memory of the serving process, bytes", peak,
            PEAK_BYTES_MAX, peak < PEAK_BYTES_MAX),
        Bar("reported cost less the exact one on five columns, epsilon",
            cost["reported_less_exact"], 0.0, cost["reported_less_exact"] >= 0.0),
    ]  # fmt: skip
    if log.growth is not None:
        bars.append(
            Bar("paid statement at 4,000, times that at 250", log.growth,
                GROWTH_MAX, log.growth <= GROWTH_MAX)
        )  # fmt: skip
    run(figures, bars)


def live(engine: Engine, statements: Iterable[str]) -> DayLog:
    """Ask the day's statements, one after the other."""
    log = DayLog()
    for place, sql in enumerate(statements, start=1):
        start = time.process_time()
        milliseconds, is_free = answered(engine, sql)
        if not is_free:
            log.paid_cpu_ms[place] = 1e3 * (time.process_time() - start)
        (log.free_ms if is_free else log.paid_ms).append(milliseconds)
        log.asked.append(sql)
        log.slowest = max(log.slowest, (milliseconds, sql))
        if place % N_EVERY == 0:
            budget = engine.budgets(LOCAL)[0]
            progress(
                f"{place} statements, {len(log.paid_ms)} paid, epsilon {float(budget.spent):.4f}, "
                f"last {N_EVERY} paid {np.median(log.paid_ms[-N_EVERY:]):.1f} ms, "
                f"free {np.median(log.free_ms[-N_EVERY:]):.1f} ms"
            )
    return log


def answered(engine: Engine, sql: str) -> tuple[float, bool]:
    """The milliseconds an answer took, and whether it was free."""
    start = time.perf_counter()
    release = engine.answer(QueryRequest(sql=sql))
    milliseconds = 1e3 * (time.perf_counter() - start)
    if release.receipt is None:
        raise RuntimeError(f"no answer: {sql}")
    return milliseconds, release.receipt.epsilon_spent == 0


def through_flight(connection: flight_sql.Connection, sql: str) -> tuple[float, bool]:
    """The same through a client."""
    milliseconds, receipt = ask(connection, sql)
    return milliseconds, not receipt["epsilon_spent"]


def free_questions(asked: list[str], rng: np.random.Generator) -> list[str]:
    """Questions of the day that the history answers: again, in other words, never asked before."""
    distinct = list(dict.fromkeys(asked))
    kinds = list(FREE_KINDS.values())
    return [
        kinds[place % len(kinds)](distinct[int(rng.integers(len(distinct)))], rng)
        for place in range(N_TIMED)
    ]


def compared_cost(path: Path, schema: Schema) -> dict[str, float]:
    """What the accountant says of the rows on five columns, beside the truth cell by cell."""
    start = time.perf_counter()
    with open_ledger(path) as ledger:
        history = ledger.history(schema.table)
    replay_seconds = time.perf_counter() - start
    raised = {one.supersedes for one in history.measurements}
    last = [one for place, one in enumerate(history.measurements) if place not in raised]
    cut = [one for one in last if set(one.block.scope) <= set(CUT)]
    paid = [PlannedMeasurement(one.block, one.weight) for one in cut]
    reported = CostState().charged(paid).table_cost()
    exact = brute_force_cost(cut, schema)
    return {
        "spent_epsilon": epsilon(history.units_spent),
        "recomputed_epsilon": epsilon(history.cost.table_cost().units),
        "recomputed_is_exact": history.cost.table_cost().exact,
        "n_measurements": len(history.measurements),
        "n_on_five_columns": len(cut),
        "reported_on_five_columns": epsilon(reported.units),
        "reported_is_exact": reported.exact,
        "exact_on_five_columns": epsilon(exact),
        "reported_less_exact": epsilon(min(reported.units, history.units_spent) - exact),
        "replay_seconds": replay_seconds,
    }


def brute_force_cost(measured: Iterable[Measurement], schema: Schema) -> int:
    """The largest sum of weight times coefficient over every cell of five columns, in units."""
    paid = np.zeros(schema.sizes(CUT), dtype=np.int64)
    for one in measured:
        coefficient = np.zeros((1,) * len(CUT), dtype=np.int64)
        for term in one.block.query.terms:
            product = np.array(int(term.scale))
            for factor in term.factors:
                product = product * over_cut(factor.axes, factor.values)
            coefficient = coefficient + product
        partition = one.block.partition
        if partition is not None:
            coefficient = coefficient * (over_cut(partition.axes, partition.labels) >= 0)
        paid += one.weight.units * np.abs(coefficient)
    return int(paid.max())


def over_cut(axes: tuple[str, ...], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """An array over some of the five columns, broadcastable over all of them."""
    shape = [1] * len(CUT)
    for name, size in zip(axes, values.shape, strict=True):
        shape[CUT.index(name)] = size
    return values.reshape(shape)


def epsilon(units: int) -> float:
    """Units as a number to print."""
    return float(Fraction(units, UNITS_PER_EPSILON))


if __name__ == "__main__":
    main()
