"""What somebody gets who asks a hundred statements of a new table, with nothing but defaults.

    python -m benchmarks.first_statements [--quick] [--seed N] [--peers]

Ten sessions of 100 different statements each, on tables of 10,000, 100,000 and 1,000,000 rows and
a budget of 1: two on each of the tables of `benchmarks.first_tables`, whose configurations are
drafts of `tacit init`. No statement (`benchmarks.first_asked`) names a target. Each runs through
the engine as it is served, on a fresh ledger with the system's noise; the answers are compared with
DuckDB's on the same rows. The bars say what is wanted, not what is reached:

* all 100 statements of every session are answered;
* the first statement of no session costs more than .02;
* at 100,000 rows, half of the main groups that are shown are within 10 %: the half-width is at most
  a tenth of the true answer. A main group has at least a twentieth of the table's rows; each of its
  columns counts, and so does the one row of a statement without groups;
* intervals hold the true answer in 94 to 96 of 100 cases. Intervals of a session share noise, so
  the uncertainty of the share is that of independent sessions (Student's t), or the binomial one if
  that is wider: a true coverage of 94 or of 96 % fails the bar about once in 2,000 runs, one of
  95 % more rarely. What ORDER BY and LIMIT have chosen by noisy values is no default answer: the
  coverage of these lists is reported apart, without a bar.

What a refused statement had charged is part of what was spent. Beside the sessions, ten statements
are asked each as the first one of a new table (`benchmarks.first_alone`). With `--peers`,
SmartNoise SQL is installed into an environment of its own and asked what the same statements cost
at the half-widths that were reached (`benchmarks.first_peers`).
"""

import argparse
import datetime as dt
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from benchmarks.first_alone import alone
from benchmarks.first_asked import N_ROWS, Asked, first_statements
from benchmarks.first_peers import Reached, smartnoise_figures
from benchmarks.first_tables import TABLES, Declared, write_table
from benchmarks.interval_coverage import coverage, coverage_bar, told
from benchmarks.report import Bar, progress, run
from cube.refusals import Refused
from proxy.api.requests import QueryRequest, QueryResult
from proxy.bootstrap import Service, build
from proxy.config.settings import load
from proxy.monitoring.logs import configure_logs

SIZES: Final = (10_000, 100_000, 1_000_000)
QUICK_SIZES: Final = (10_000, 100_000)
N_SESSIONS: Final = 10
N_STATEMENTS: Final = 100
QUICK_N_STATEMENTS: Final = 40
SEED: Final = 36
FIRST_MAX: Final = 0.02
JUDGED_SIZE: Final = 100_000
MAIN_SHARE: Final = 1 / 20  # of the table's rows
NEAR: Final = 0.1
NEAR_SHARE_MIN: Final = 0.5
CHOSEN_BY_NOISE: Final = "top"
ROUNDING: Final = 1e-9  # of sums of doubles in another order


@dataclass(frozen=True, slots=True)
class Shown:
    """A number of an answer beside the true one.

    Parameters
    ----------
    kind : str
        The statement's.
    column : int
        Which of its aggregates.
    value, low, high : float
        As answered; the ends are not finite where there is no interval, the value is NaN for NULL.
    truth : float
    divisor : float
        The true divisor of a ratio or an average; NaN for anything else.
    n_rows : int
        True rows of the group under the condition.
    """

    kind: str
    column: int
    value: float
    low: float
    high: float
    truth: float
    divisor: float
    n_rows: int

    @property
    def half_width(self) -> float:
        """The larger of the distances to both ends, one of which may be cut off."""
        width = max(self.high - self.value, self.value - self.low)
        return width if math.isfinite(width) else math.inf

    @property
    def has_interval(self) -> bool:
        """Whether it has one with finite ends."""
        return math.isfinite(self.half_width)

    @property
    def holds(self) -> bool:
        """Whether the interval has the true answer."""
        slack = ROUNDING * abs(self.truth)
        return self.low - slack <= self.truth <= self.high + slack

    @property
    def relative(self) -> float:
        """The half-width, of the true answer."""
        return self.half_width / abs(self.truth) if self.truth else math.inf

    @property
    def error(self) -> float:
        """The error, of the true answer; infinite for NULL."""
        off = abs(self.value - self.truth) / abs(self.truth) if self.truth else math.inf
        return math.inf if math.isnan(off) else off


@dataclass(slots=True)
class Session:
    """How the statements of a session fared.

    Parameters
    ----------
    table : Declared
    n_rows : int
    costs : list of (Asked, float)
        What each statement spent, answered or not.
    refused : list of (str, float)
        For each refusal its code, and what had been charged.
    shown : list of Shown
    reached : list of Reached
        The answered statements, for other libraries.
    seconds : list of float
        Processor time of this process for each statement.
    """

    table: Declared
    n_rows: int
    costs: list[tuple[Asked, float]] = field(default_factory=list)
    refused: list[tuple[str, float]] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    reached: list[Reached] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def spent(self) -> float:
        """The epsilon at the end."""
        return math.fsum(cost for _, cost in self.costs)

    @property
    def main(self) -> list[Shown]:
        """What is shown of main groups."""
        return [one for one in self.shown if one.n_rows >= MAIN_SHARE * self.n_rows]


def session(table: Declared, n_rows: int, seed: Sequence[int], n_statements: int) -> Session:
    """Ask statements of a new table.

    Parameters
    ----------
    table : Declared
    n_rows : int
    seed : sequence of int
        Of rows and statements, not of noise; the last is the session's number, which decides the
        kind of the first statement.
    n_statements : int
    """
    rng = np.random.default_rng(seed)
    found = Session(table, n_rows)
    with TemporaryDirectory(prefix="tacit-bench-") as folder, duckdb.connect() as exact:
        settings = load(write_table(table, Path(folder), rng, n_rows))
        exact.execute(f"CREATE TABLE {table.name} AS {table.clamped(Path(folder))}")
        service = build(settings)
        try:
            for asked in first_statements(table, rng, n_statements, seed[-1]):
                _ask(service, exact, asked, found)
        finally:
            service.close()
    return found


def _ask(service: Service, exact: duckdb.DuckDBPyConnection, asked: Asked, found: Session) -> None:
    before = _spent(service, asked.table)
    began = time.process_time()
    result = refusal = None
    try:
        result = service.engine.answer(QueryRequest(sql=asked.sql))
    except Refused as refused:
        refusal = refused
    found.seconds.append(time.process_time() - began)
    cost = _spent(service, asked.table) - before
    found.costs.append((asked, cost))
    if refusal is not None:
        found.refused.append((refusal.code, cost))
    if result is not None:
        shown = beside(asked, result, exact.sql(asked.exact_sql).to_arrow_table())
        found.shown += shown
        found.reached.append(_reached(asked, cost, shown))


def _spent(service: Service, table: str) -> float:
    (spent,) = [one.spent for one in service.budgets() if one.table == table]
    return float(spent)


def beside(asked: Asked, result: QueryResult, exact: pa.Table) -> list[Shown]:
    """Each number of an answer beside the true one; groups without a true number are left out."""
    if result.receipt is None:
        raise RuntimeError("an answer about a private table has a receipt")
    keys = [f"k{number}" for number in range(1, len(asked.keys) + 1)]
    truths = {_key(row, keys): row for row in exact.to_pylist()}
    nothing: dict[str, object] = {N_ROWS: 0}
    for number, one in enumerate(asked.aggregates, 1):
        if one.sql.startswith("COUNT"):
            nothing[f"v{number}"] = 0
    intervals = {column.name: column for column in result.receipt.columns}
    shown = []
    for place, row in enumerate(result.data.to_pylist()):
        truth = truths.get(_key(row, keys), nothing)
        for column in range(1, len(asked.aggregates) + 1):
            name = f"v{column}"
            if truth.get(name) is None:
                continue
            said = intervals.get(name)
            ends = (said.low[place], said.high[place]) if said else (-math.inf, math.inf)
            shown.append(
                Shown(
                    kind=asked.kind,
                    column=column,
                    value=_number(row[name]),
                    low=ends[0],
                    high=ends[1],
                    truth=_number(truth[name]),
                    divisor=_number(truth.get(f"d{column}")),
                    n_rows=int(_number(truth[N_ROWS])),
                )
            )
    return shown


def _key(row: Mapping[str, object], keys: Iterable[str]) -> tuple[object, ...]:
    """The keys of a row; a moment is its day."""
    values = (row[key] for key in keys)
    return tuple(one.date() if isinstance(one, dt.datetime) else one for one in values)


def _number(value: object) -> float:
    """A number of an answer; NaN for NULL."""
    return math.nan if value is None else float(str(value))


def _reached(asked: Asked, cost: float, shown: Sequence[Shown]) -> Reached:
    """The half-widths of a statement's columns, group by group."""
    columns = [[one for one in shown if one.column == c + 1] for c in range(len(asked.aggregates))]
    return Reached(
        asked,
        cost,
        tuple(
            tuple((one.half_width, one.truth, one.divisor) for one in column if one.has_interval)
            for column in columns
        ),
    )


def held(sessions: Iterable[Session], *, chosen: bool = False) -> list[list[bool]]:
    """Whether the intervals of sessions hold the truth: of lists that noise has chosen, or not."""
    return [
        [
            one.holds
            for one in found.shown
            if one.has_interval and (one.kind == CHOSEN_BY_NOISE) == chosen
        ]
        for found in sessions
    ]


def near(shown: Sequence[Shown], of: Callable[[Shown], float]) -> float | None:
    """The share of numbers whose distance is near; None of none."""
    return float(np.mean([of(one) <= NEAR for one in shown])) if shown else None


def figures_of(sessions: Sequence[Session]) -> dict[str, object]:
    """What is reported of the sessions of one size."""
    shown = [one for found in sessions for one in found.shown]
    main = [one for found in sessions for one in found.main]
    refused = [one for found in sessions for one in found.refused]
    seconds = [one for found in sessions for one in found.seconds]
    by_table: dict[str, list[Shown]] = defaultdict(list)
    costs: dict[str, list[float]] = defaultdict(list)
    widths: dict[str, list[float]] = defaultdict(list)
    for found in sessions:
        by_table[found.table.name] += found.main
        for asked, cost in found.costs:
            costs[asked.kind].append(cost)
    for one in shown:
        widths[one.kind].append(one.relative)
    return {
        "answered_by_session": [len(one.costs) - len(one.refused) for one in sessions],
        "refused_by_code": dict(Counter(code for code, _ in refused)),
        "charged_for_refused": math.fsum(cost for _, cost in refused),
        "epsilon_of_the_first": [
            {"kind": one.costs[0][0].kind, "table": one.table.name, "epsilon": one.costs[0][1]}
            for one in sessions
        ],
        "epsilon_at_the_end": [one.spent for one in sessions],
        "coverage": told(coverage(held(sessions))),
        "coverage_of_lists_that_noise_chose": told(coverage(held(sessions, chosen=True))),
        "without_an_interval": sum(not one.has_interval for one in shown),
        "main_groups": {
            "shown": len(main),
            "half_width_within_tenth": near(main, lambda one: one.relative),
            "error_within_tenth": near(main, lambda one: one.error),
            "half_width_within_tenth_by_table": {
                name: near(of_table, lambda one: one.relative)
                for name, of_table in by_table.items()
            },
        },
        "by_kind": {
            kind: {
                "statements": len(costs[kind]),
                "epsilon_mean": float(np.mean(costs[kind])),
                "median_relative_half_width": _finite(float(np.median(widths[kind])))
                if widths[kind]
                else None,
            }
            for kind in sorted(costs)
        },
        "cpu_seconds": {
            "a_statement_median": float(np.median(seconds)),
            "a_statement_largest": max(seconds),
            "a_session_mean": sum(seconds) / len(sessions),
        },
    }


def _finite(value: float) -> float | None:
    """A number for JSON."""
    return value if math.isfinite(value) else None


def bars_of(by_size: Mapping[int, Sequence[Session]]) -> list[Bar]:
    """The bars."""
    everything = [one for sessions in by_size.values() for one in sessions]
    answered = min(1 - len(one.refused) / len(one.costs) for one in everything)
    first = max(one.costs[0][1] for one in everything)
    main = [one for found in by_size[JUDGED_SIZE] for one in found.main]
    main_share = near(main, lambda one: one.relative) or 0.0
    return [
        Bar("share of statements answered, the worst session", answered, 1.0, answered == 1),
        Bar("epsilon of the first statement, the largest", first, FIRST_MAX, first <= FIRST_MAX),
        Bar(
            f"share of main groups within {NEAR:.0%} at {JUDGED_SIZE:,} rows",
            main_share,
            NEAR_SHARE_MIN,
            main_share >= NEAR_SHARE_MIN,
        ),
        coverage_bar(coverage(held(everything))),
    ]


def main() -> None:
    """Run the benchmark and print its report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    n_quick = len(TABLES)
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{n_quick} sessions of {QUICK_N_STATEMENTS} statements, no table of a million rows",
    )
    parser.add_argument("--seed", type=int, default=SEED, help="of rows and statements")
    parser.add_argument("--peers", action="store_true", help="install and ask SmartNoise SQL")
    wanted = parser.parse_args()
    configure_logs()  # to standard error
    threadpool_limits(limits=1)  # as in the served process
    n_statements = QUICK_N_STATEMENTS if wanted.quick else N_STATEMENTS
    by_size: dict[int, list[Session]] = {}
    for n_rows in QUICK_SIZES if wanted.quick else SIZES:
        by_size[n_rows] = []
        for number in range(n_quick if wanted.quick else N_SESSIONS):
            table = TABLES[number % len(TABLES)]
            found = session(table, n_rows, (wanted.seed, n_rows, number), n_statements)
            by_size[n_rows].append(found)
            n_answered = len(found.costs) - len(found.refused)
            progress(
                f"{table.name}, {n_rows:,} rows: {n_answered} of {n_statements} answered, "
                f"epsilon {found.spent:.3f}, {sum(found.seconds):.0f} s"
            )
    figures: dict[str, object] = {"seed": wanted.seed, "statements_of_a_session": n_statements}
    figures |= {f"{n_rows}_rows": figures_of(sessions) for n_rows, sessions in by_size.items()}
    figures["ten_first_statements"] = {
        f"{n_rows}_rows": alone(np.random.default_rng((wanted.seed, n_rows)), n_rows)
        for n_rows in by_size
    }
    if wanted.peers:
        asked = {
            n_rows: [(one.table, one.reached) for one in sessions]
            for n_rows, sessions in by_size.items()
        }
        figures["smartnoise"] = smartnoise_figures(asked)
    run(figures, bars_of(by_size))


if __name__ == "__main__":
    main()
