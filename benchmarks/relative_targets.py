"""What targets relative to the answer cost, against asking at once for what they reach.

A thousand random targets: counts and sums of random sizes in up to twelve groups of random shares,
on histories that are empty or hold the same groups, their total, or the statement itself at another
accuracy. Each is asked for by the fraction; what it cost is compared with the price of its final
half-width on the same history, asked for at once with the confidence that intervals of a search
have (`planner.decision`). On an empty history it is also compared with the price of that
half-width with the confidence that was named, which has no correction in it. Then it is asked
again, which must be free, and half as accurately.

The half-width that is reached is compared with the widest that would have been enough, of which
nobody can know before noise is seen. That is a figure without a bar.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import NoReturn

import numpy as np

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from benchmarks.histogram_source import HistogramSource
from benchmarks.report import Bar, progress, run, wants_quick
from cube.axis import IntegerAxis, MeasureAxis
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.decision import surer
from planner.planner import Planner
from planner.workload import Wanted
from proxy.api.requests import QueryRequest, QueryResult
from proxy.engine.engine import Engine
from proxy.tables.private_table import ServedTable
from proxy.tables.snapshot import TableSnapshot

N_TARGETS, N_QUICK = 1000, 60
SPEND_MAX = 1.3  # of asking at once for the half-width that is reached
RELATIVES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
AT_LEAST_SHARES = (0.01, 0.02, 0.05)  # of the total
N_LEVELS = 11  # of the summed column
CONFIDENCE = 0.95
BUDGET = Fraction(100_000)
ROUNDING = 1e-9  # the ends of an interval are rounded outwards
SEED = 20261122
SELECT = "SELECT WITH DIFFERENTIAL_PRIVACY"


@dataclass(frozen=True, slots=True)
class Case:
    """A table, what was asked of it before, and a relative target.

    Parameters
    ----------
    schema : Schema
    counts : (n_groups, N_LEVELS) ndarray of int64
    weights : (N_LEVELS,) ndarray of int64
        What a record of each level adds to the answer.
    aggregate : str
    relative, at_least : float
    before : tuple of str
        Statements.
    """

    schema: Schema
    counts: np.ndarray
    weights: np.ndarray
    aggregate: str
    relative: float
    at_least: float
    before: tuple[str, ...]

    @property
    def sql(self) -> str:
        """The statement."""
        return self.asked_to(self.relative)

    def asked_to(self, relative: float) -> str:
        """The statement with another relative target."""
        options = f"relative => {relative}, at_least => {self.at_least}"
        return grouped(self.aggregate, options)

    @property
    def enough(self) -> float:
        """The widest half-width that is enough for every group, by its true answer."""
        truths = self.counts @ self.weights
        floor = self.relative * self.at_least
        return float(np.maximum(self.relative / (1 + self.relative) * truths, floor).min())


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a case cost, as a share of asking at once; and what was reached of what was enough."""

    spend: float
    spend_uncorrected: float
    is_first: bool
    waste: float
    was_met: bool
    again: float
    n_rounds: int


def grouped(aggregate: str, options: str) -> str:
    """A statement by group."""
    said = f"{SELECT} OPTIONS({options}) g, {aggregate} AS a"
    return f"{said} FROM t GROUP BY g"


def random_case(rng: np.random.Generator) -> Case:
    """A table and a target."""
    n_groups = int(rng.integers(1, 13))
    n_records = int(10 ** rng.uniform(3, 5.5))
    shares = rng.dirichlet(np.full(n_groups, rng.choice([0.5, 2.0, 50.0])))
    levels = rng.dirichlet(np.full(N_LEVELS, 0.5), size=n_groups)
    counts = np.stack(
        [
            rng.multinomial(int(n_records * s), level)
            for s, level in zip(shares, levels, strict=True)
        ]
    ).astype(np.int64)
    step = int(rng.choice([1, 10, 1000]))
    axes = (
        IntegerAxis(name="g", low=0, high=n_groups - 1),
        MeasureAxis(name="x", low=0, high=step * (N_LEVELS - 1), step=step),
    )
    n_records_max = int(n_records * rng.choice([1.2, 10, 1000])) + 1
    schema = Schema(table="t", axes=axes, n_records_max=n_records_max)
    aggregate = str(rng.choice(["COUNT(*)", "SUM(x)"]))
    weights = np.arange(N_LEVELS) * step if aggregate == "SUM(x)" else np.ones(N_LEVELS, int)
    total = n_records * (1.0 if aggregate == "COUNT(*)" else step * N_LEVELS / 2)
    at_least = total * float(rng.choice(AT_LEAST_SHARES))
    relative = float(rng.choice(RELATIVES))
    case = Case(schema, counts, weights, aggregate, relative, at_least, ())
    other = float(rng.choice(RELATIVES))
    before = (
        (),
        (grouped("COUNT(*)", f"half_width => {n_records / 10}"),),
        (grouped("SUM(x)", f"half_width => {n_records * step}"),),
        (case.asked_to(other),),
        (f"{SELECT} OPTIONS(half_width => {n_records / 50}) COUNT(*) FROM t",),
    )[int(rng.integers(5))]
    return Case(schema, counts, weights, aggregate, relative, at_least, before)


@contextmanager
def served(case: Case) -> Iterator[tuple[Engine, ServedTable]]:
    """The case's table behind an engine, with a new ledger."""
    source = HistogramSource(("g", "x"), case.counts)
    with (
        tempfile.TemporaryDirectory() as folder,
        open_ledger(Path(folder) / "ledger.db") as ledger,
    ):
        gate = open_table(ledger, case.schema, BUDGET, source, SystemNoise())
        default = AccuracyTarget(half_width=1.0, confidence=CONFIDENCE)
        table = ServedTable(case.schema, default, gate)
        yield Engine({"t": table}), table


def outcome(case: Case) -> Outcome:
    """Ask for a case's target, and compare."""
    with served(case) as (engine, table):
        for sql in case.before:
            ask(engine, sql)
        before = table.snapshot()
        n_before = len(table.history)
        found = ask(engine, case.sql)
        spent = epsilon_of(found)
        reached = widest_of(found)
        n_rounds = len(table.history) - n_before
        corrected = at_once(case, before, reached, surer(CONFIDENCE))
        uncorrected = at_once(case, before, reached, CONFIDENCE)
        again = epsilon_of(ask(engine, case.sql)) + epsilon_of(
            ask(engine, case.asked_to(min(2 * case.relative, 0.9)))
        )
    return Outcome(
        spend=ratio(spent, corrected),
        spend_uncorrected=ratio(spent, uncorrected),
        is_first=not case.before,
        waste=case.enough / reached,
        was_met=spent == 0,
        again=again,
        n_rounds=n_rounds,
    )


def at_once(case: Case, before: TableSnapshot, half_width: float, confidence: float) -> float:
    """The price of a half-width on a history, asked for as such."""
    default = AccuracyTarget(half_width=1.0, confidence=CONFIDENCE)
    (part,) = Planner({"t": case.schema}, {"t": default}).plan(case.sql).parts
    target = AccuracyTarget(half_width=half_width * (1 + ROUNDING), confidence=confidence)
    wanted = [Wanted(block, target) for block in part.aggregates[0].blocks]
    plan = before.plan(wanted, before.estimates(wanted))
    return float(before.price(plan.planned).epsilon)


def ratio(spent: float, price: float) -> float:
    """What was spent of a price; 1 if both are nothing."""
    if not price:
        return float("inf") if spent else 1.0
    return spent / price


def ask(engine: Engine, sql: str) -> QueryResult:
    """The answer to a statement."""
    return engine.answer(QueryRequest(sql=sql))


def epsilon_of(found: QueryResult) -> float:
    """What an answer cost."""
    if found.receipt is None:
        raise RuntimeError("an answer about a private table has a receipt")
    return float(found.receipt.epsilon_spent)


def widest_of(found: QueryResult) -> float:
    """The widest half-width of an answer's rows; of its interval's ends, one may be cut off."""
    if found.receipt is None:
        raise RuntimeError("an answer about a private table has a receipt")
    (column,) = found.receipt.columns
    values = np.array(found.data.column("a").to_pylist(), dtype=np.float64)
    ends = np.maximum(np.array(column.high) - values, values - np.array(column.low))
    return float(ends.max())


def main() -> NoReturn:
    """Measure, and compare with the bars."""
    is_quick = wants_quick(__doc__)
    n_targets = N_QUICK if is_quick else N_TARGETS
    rng = np.random.default_rng(SEED)
    found = []
    for number in range(n_targets):
        found.append(outcome(random_case(rng)))
        if number % 50 == 49:
            progress(f"{number + 1} of {n_targets}")
    bought = [one for one in found if not one.was_met]
    spends = np.array([one.spend for one in bought])
    firsts = np.array([one.spend_uncorrected for one in bought if one.is_first])
    wastes = np.array([one.waste for one in bought])
    rounds = np.array([one.n_rounds for one in bought])
    again = max(one.again for one in found)
    figures = {
        "targets": n_targets,
        "met_by_the_history": len(found) - len(bought),
        "spend_of_asking_at_once": {
            "mean": spends.mean(),
            "median": np.median(spends),
            "largest": spends.max(),
        },
        "spend_uncorrected_on_an_empty_history": {
            "mean": firsts.mean(),
            "largest": firsts.max(),
        },
        "enough_over_reached": {
            "mean": wastes.mean(),
            "median": np.median(wastes),
            "95_of_100": np.quantile(wastes, 0.95),
        },
        "charges": {"mean": rounds.mean(), "largest": int(rounds.max())},
    }
    run(
        figures,
        [
            Bar(
                "spend of asking at once for what is reached, the largest of all targets",
                float(spends.max()),
                SPEND_MAX,
                bool(spends.max() <= SPEND_MAX),
            ),
            Bar("epsilon for a target that is met already", again, 0.0, again == 0),
        ],
    )


if __name__ == "__main__":
    main()
