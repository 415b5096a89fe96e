"""What searches for a target charge when they end without an answer, and beside asking directly.

    python -m benchmarks.random_searches [--quick] [--seed N]

A thousand random explicit targets, half-widths and shares of the answer, with and without
`at_least`, at several confidences: of counts, sums, averages, ratios, quantiles, distinct people
and correlations, alone and by group, on the tables of `benchmarks.first_tables` with 1,000 to
100,000 rows. Each meets a ledger of its own, with a budget of .03 to 1,000 and often a limit for
each query; some meet a history. Many targets cannot be afforded, or not be reached at all. The bars
say what is wanted, not what is reached:

* no search that ends without an answer charges more than a tenth of what was left of the budget;
* none charges and gives nothing: a refusal, or an answer in which every number is NULL;
* a relative target on an empty history costs at most 1.3 times, in the mean, what asking at once
  for the half-width that it reached costs there. Counts and sums are asked for at the confidence
  that intervals of a search have (`planner.decision`); a formula's own search has that
  correction by itself;
* intervals at 95 % hold the true answer in 94 to 96 of 100 cases. Targets are independent of each
  other; the numbers of one answer are not, so the uncertainty is that of whole answers.

Statements have no limit of time here, so that a busy machine changes no figure.
"""

import argparse
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import duckdb
import numpy as np
from threadpoolctl import threadpool_limits

from accountant.gate.opening import open_table
from accountant.ledger.entries import LimitSet
from accountant.ledger.limits import Limit, Subject, SubjectKind
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from benchmarks.first_asked import COUNT, KINDS, Asked, Draw
from benchmarks.first_statements import Shown, beside
from benchmarks.first_tables import TABLES, Declared, write_table
from benchmarks.interval_coverage import coverage, coverage_bar, told
from benchmarks.report import Bar, progress, run
from cube.refusals import Refused
from planner.decision import surer
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, QueryRequest, QueryResult
from proxy.config.settings import load
from proxy.config.table_settings import TableSettings
from proxy.engine.engine import Engine
from proxy.monitoring.logs import configure_logs
from proxy.sources.bounding import RowsRead
from proxy.sources.duckdb_source import DuckDbSource
from proxy.tables.private_table import ServedTable

SIZES: Final = (1000, 10_000, 100_000)
QUICK_SIZES: Final = (1000, 10_000)
N_TARGETS, QUICK_N_TARGETS = 1000, 60
SEED: Final = 36
UNANSWERED_MAX: Final = 0.1  # of what was left
SPEND_MAX: Final = 1.3  # of asking directly, in the mean
RELATIVES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
AT_LEASTS: Final = (0.1, 1.0)  # of a middling answer
CONFIDENCE: Final = 0.95
CONFIDENCES: Final = (CONFIDENCE, CONFIDENCE, CONFIDENCE, 0.9, 0.99)
PER_QUERY: Final = (0.05, 0.2, 0.5)  # of the budget
AMPLE: Final = Fraction(10**9)
N_WORST: Final = 5
ROUNDING: Final = 1e-9  # the ends of an interval are rounded outwards
UNIT_KEY: Final = bytes(32)
ALONE: Final = tuple(kind for kind in KINDS if kind != "top")
SEVERAL: Final = "several by group"  # of counts and of money: no half-width is for both


@dataclass(frozen=True, slots=True)
class World:
    """A table in memory, for as many ledgers as are wanted, and DuckDB with the same rows."""

    table: Declared
    settings: TableSettings
    source: DuckDbSource
    exact: duckdb.DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class Case:
    """A statement, its target, and what it may spend.

    Parameters
    ----------
    asked : Asked
    target : RequestedTarget
    budget : Fraction
    per_query : Fraction, optional
    before : RequestedTarget, optional
        The target of a count by the same keys that is asked first.
    """

    asked: Asked
    target: RequestedTarget
    budget: Fraction
    per_query: Fraction | None
    before: RequestedTarget | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a search ended.

    Parameters
    ----------
    case : Case
    left, spent : float
        Epsilon: left before it, and charged by it.
    code : str
        That of the refusal; empty for an answer.
    shown : tuple of Shown
        The numbers of the answer.
    directly : float, optional
        For a relative target on an empty history, the price of what it reached.
    """

    case: Case
    left: float
    spent: float
    code: str
    shown: tuple[Shown, ...]
    directly: float | None = None

    @property
    def share_for_nothing(self) -> float:
        """What was charged without an answer, of what was left."""
        return self.spent / self.left if self.code else 0.0

    @property
    def is_for_nothing(self) -> bool:
        """Whether it charged, and not one number was given."""
        return self.spent > 0 and all(math.isnan(one.value) for one in self.shown)

    @property
    def held(self) -> list[bool]:
        """Whether each interval holds the truth."""
        return [one.holds for one in self.shown if one.has_interval]


@contextmanager
def opened(table: Declared, n_rows: int, rng: np.random.Generator) -> Iterator[World]:
    """A table with rows at random."""
    with TemporaryDirectory(prefix="tacit-bench-") as folder, duckdb.connect() as exact:
        (settings,) = load(write_table(table, Path(folder), rng, n_rows)).tables
        source = DuckDbSource(settings.schema, settings.read_from, RowsRead(UNIT_KEY))
        exact.execute(f"CREATE TABLE {table.name} AS {table.clamped(Path(folder))}")
        yield World(table, settings, source, exact)


@contextmanager
def served(
    world: World, budget: Fraction, per_query: Fraction | None = None
) -> Iterator[tuple[Engine, ServedTable]]:
    """The table behind an engine, with a new ledger."""
    with (
        TemporaryDirectory(prefix="tacit-bench-") as folder,
        open_ledger(Path(folder) / "ledger.db") as ledger,
    ):
        one = world.settings
        gate = open_table(ledger, one.schema, budget, world.source, SystemNoise())
        if per_query is not None:
            limit = Limit(Subject(SubjectKind.EACH_ANALYST), per_query=per_query)
            ledger.append(one.schema.table, lambda _history: LimitSet(limit, "owner"))
        table = ServedTable(one.schema, one.default, gate, one.strategy, sums=one.sums)
        yield Engine({one.schema.table: table}), table


def random_case(world: World, rng: np.random.Generator) -> Case:
    """A statement and a target; many cost more than there is."""
    draw = Draw(world.table, rng)
    kind = ALONE[int(rng.integers(len(ALONE)))]
    keys, aggregates = KINDS[kind](draw)
    asked = Asked(kind, world.table.name, keys, aggregates, draw.where())
    truths = [row["v1"] for row in world.exact.sql(asked.exact_sql).to_arrow_table().to_pylist()]
    middling = float(np.median([abs(float(one)) for one in truths if one is not None] or [1.0]))
    confidence = float(rng.choice(CONFIDENCES))
    if kind != SEVERAL and rng.random() < 0.5:
        half_width = (middling or 1.0) * float(10 ** rng.uniform(-2.5, 0.0))
        target = RequestedTarget(half_width=half_width, confidence=confidence)
    else:
        at_least = middling * float(rng.choice(AT_LEASTS)) if rng.random() < 0.5 else 0.0
        target = RequestedTarget(
            relative=float(rng.choice(RELATIVES)),
            at_least=at_least or None,
            confidence=confidence,
        )
    budget = Fraction(float(10 ** rng.uniform(-1.5, 3.0))).limit_denominator(1000)
    share = Fraction(float(rng.choice(PER_QUERY))).limit_denominator(100)
    n_records = world.settings.schema.n_records_max
    return Case(
        asked=asked,
        target=target,
        budget=budget,
        per_query=share * budget if rng.random() < 0.5 else None,
        before=RequestedTarget(half_width=0.05 * n_records) if rng.random() < 0.3 else None,
    )


def outcome(world: World, case: Case) -> Outcome:
    """Search for a case's target, and ask directly for what a relative one reached."""
    with served(world, case.budget, case.per_query) as (engine, _):
        if case.before is not None:
            with suppress(Refused):
                ask(
                    engine,
                    Asked("groups", case.asked.table, case.asked.keys, (COUNT,)),
                    case.before,
                )
        left = float(case.budget) - spent_of(engine)
        code = ""
        shown: tuple[Shown, ...] = ()
        try:
            result = ask(engine, case.asked, case.target)
        except Refused as refusal:
            code = refusal.code
        else:
            exact = world.exact.sql(case.asked.exact_sql).to_arrow_table()
            shown = tuple(beside(case.asked, result, exact))
        spent = left - (float(case.budget) - spent_of(engine))
    found = Outcome(case, left, spent, code, shown)
    is_priced = case.target.relative is not None and case.before is None and spent > 0
    return replace(found, directly=_directly(world, found)) if is_priced and shown else found


def _directly(world: World, found: Outcome) -> float | None:
    """What the widest half-width of an answer costs on a new ledger; None if it has several.

    A half-width that is asked for as such is that of all groups, as it is where a relative target
    ends.
    """
    case = found.case
    widths = [one.half_width for one in found.shown if one.has_interval]
    if len(case.asked.aggregates) > 1 or not widths:
        return None
    confidence = case.target.confidence or CONFIDENCE
    is_linear = len(case.asked.aggregates[0].parts) == 1
    target = RequestedTarget(
        half_width=max(widths) * (1 + ROUNDING),
        confidence=surer(confidence) if is_linear else confidence,
    )
    with served(world, AMPLE) as (engine, _):
        try:
            ask(engine, case.asked, target)
        except Refused:
            return None
        return spent_of(engine)


def ask(engine: Engine, asked: Asked, target: RequestedTarget) -> QueryResult:
    """The answer to a statement."""
    return engine.answer(QueryRequest(sql=asked.sql, target=target))


def spent_of(engine: Engine) -> float:
    """The epsilon that the only table has spent."""
    (budget,) = engine.budgets(LOCAL)
    return float(budget.spent)


def figures_of(found: Sequence[Outcome]) -> dict[str, object]:
    """What is reported."""
    unanswered = [one for one in found if one.code and one.spent > 0]
    by_kind = {kind: [one for one in found if one.case.asked.kind == kind] for kind in ALONE}
    by_confidence = {
        confidence: [one.held for one in found if one.case.target.confidence == confidence]
        for confidence in sorted(set(CONFIDENCES))
    }
    by_target = {
        "half_width": [one.held for one in found if one.case.target.relative is None],
        "relative": [one.held for one in found if one.case.target.relative is not None],
    }
    return {
        "targets": len(found),
        "answered": sum(not one.code for one in found),
        "refused_by_code": dict(Counter(one.code for one in found if one.code)),
        "charged_without_an_answer": {
            "targets": len(unanswered),
            "share_of_what_was_left": _spread([one.share_for_nothing for one in unanswered]),
            "worst": [
                {
                    "sql": one.case.asked.sql,
                    "relative": one.case.target.relative,
                    "half_width": one.case.target.half_width,
                    "left": one.left,
                    "spent": one.spent,
                }
                for one in sorted(unanswered, key=lambda one: -one.share_for_nothing)[:N_WORST]
            ],
        },
        "charged_for_nothing_but_nulls": sum(one.is_for_nothing and not one.code for one in found),
        "spend_of_asking_directly": {
            "counts_and_sums": _spread(overspends(found, linear=True)),
            "formulas": _spread(overspends(found, linear=False)),
        },
        "coverage_by_confidence": {
            str(confidence): told(coverage(held)) for confidence, held in by_confidence.items()
        },
        "coverage_by_target_at_any_confidence": {
            name: told(coverage(held)) for name, held in by_target.items()
        },
        "by_kind": {
            kind: {
                "targets": len(of_kind),
                "answered": sum(not one.code for one in of_kind),
                "charged_without_an_answer": sum(bool(x.code) and x.spent > 0 for x in of_kind),
            }
            for kind, of_kind in by_kind.items()
        },
    }


def overspends(found: Sequence[Outcome], *, linear: bool) -> list[float]:
    """What relative targets cost, of asking directly: of counts and sums, or of formulas."""
    return [
        one.spent / one.directly
        for one in found
        if one.directly and (len(one.case.asked.aggregates[0].parts) == 1) == linear
    ]


def _spread(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {"n": 0}
    return {
        "n": len(values),
        "mean": float(np.mean(values)),
        "median": float(np.median(values)),
        "95_of_100": float(np.quantile(values, 0.95)),
        "largest": max(values),
    }


def bars_of(found: Sequence[Outcome]) -> list[Bar]:
    """The bars."""
    share = max(one.share_for_nothing for one in found)
    n_for_nothing = sum(one.is_for_nothing for one in found)
    all_spends = [*overspends(found, linear=True), *overspends(found, linear=False)]
    spend = float(np.mean(all_spends)) if all_spends else 0.0
    covered = coverage([one.held for one in found if one.case.target.confidence == CONFIDENCE])
    return [
        Bar(
            "charged without an answer, of what was left, the largest",
            share,
            UNANSWERED_MAX,
            share <= UNANSWERED_MAX,
        ),
        Bar("charged and gave nothing", n_for_nothing, 0, n_for_nothing == 0),
        Bar("relative targets, of asking directly, mean", spend, SPEND_MAX, spend <= SPEND_MAX),
        coverage_bar(covered),
    ]


def main() -> None:
    """Run the benchmark and print its report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_N_TARGETS} targets")
    parser.add_argument("--seed", type=int, default=SEED, help="of rows and targets")
    wanted = parser.parse_args()
    configure_logs()  # to standard error
    threadpool_limits(limits=1)  # as in the served process
    n_targets = QUICK_N_TARGETS if wanted.quick else N_TARGETS
    rng = np.random.default_rng(wanted.seed)
    found = []
    with ExitStack() as stack:
        sizes = QUICK_SIZES if wanted.quick else SIZES
        tables = [
            stack.enter_context(opened(table, n_rows, rng)) for n_rows in sizes for table in TABLES
        ]
        for number in range(n_targets):
            world = tables[int(rng.integers(len(tables)))]
            found.append(outcome(world, random_case(world, rng)))
            if number % 10 == 9:
                progress(f"{number + 1} of {n_targets}")
    run({"seed": wanted.seed, **figures_of(found)}, bars_of(found))


if __name__ == "__main__":
    main()
