"""What a declared batch of group-bys on many columns costs, against asking one after another.

    python -m benchmarks.plan_scopes [--quick]

Batches of counts on the Adult table's public schema, each statement grouped by one to three
columns, some of them on a range of ages: too many columns for common cells. The table is empty, and
what either buys is priced by the accountant:

- `auto`, `query`: the statements come one by one, by the table's strategy;
- `planned`: `tacit plan`, which promises at most that.

The bars: planned at most the cheaper of both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from time import process_time

import numpy as np

from accountant.gate.pricing import Pricing
from accountant.ledger.history.table_history import TableHistory
from benchmarks.report import Bar, progress, run, wants_quick
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Scope, counting
from cube.schema import Schema
from cube.target import AccuracyTarget
from inference.estimator import Estimator
from planner.batch.together import bought_one_by_one, plan_together
from planner.measuring.candidates import Strategy
from planner.measuring.hindsight import Hindsight
from planner.measuring.offers import PricingContext
from planner.measuring.ski_rental import SkiRental
from planner.measuring.weighing import Forecast
from planner.workload import Wanted
from proxy.config.settings import load

CONFIGURATION = Path(__file__).parent.parent / "examples" / "adult" / "tacit.toml"
CONFIDENCE = 0.95
N_CELLS_MAX = 600  # of a group-by
ROUNDING = 1e-3  # half-widths are brought to their targets on a grid of weights
SMALL = (
    "education",
    "education_num",
    "income",
    "marital_status",
    "occupation",
    "race",
    "relationship",
    "sex",
    "workclass",
)


@dataclass(frozen=True, slots=True)
class Mix:
    """A batch's recipe."""

    n_statements: int
    n_columns_max: int
    half_widths: tuple[float, ...] = (500.0,)
    share_of_ranges: float = 0.0
    seed: int = 1

    @property
    def name(self) -> str:
        """For the report."""
        ranges = f", {self.share_of_ranges:.0%} on ranges" if self.share_of_ranges else ""
        widths = "/".join(f"{width:g}" for width in self.half_widths)
        return f"{self.n_statements} by up to {self.n_columns_max} at {widths}{ranges}"


MIXES = (
    Mix(27, 2),
    Mix(27, 2, (250.0, 500.0, 1000.0), seed=2),
    Mix(15, 3, seed=3),
    Mix(12, 2, share_of_ranges=0.5, seed=4),
    Mix(40, 2, (500.0, 1000.0), share_of_ranges=0.3, seed=5),
)


def drawn(mix: Mix, schema: Schema) -> list[list[Wanted]]:
    """The statements of a batch, none of them twice."""
    rng = np.random.default_rng(mix.seed)
    scopes = [
        scope
        for size in range(1, mix.n_columns_max + 1)
        for scope in combinations(SMALL, size)
        if schema.n_cells(scope) <= N_CELLS_MAX
    ]
    chosen = rng.permutation(len(scopes))[: mix.n_statements]
    return [
        [
            Wanted(
                QueryBlock(_ranged(rng, mix, schema), _every_cell(scopes[place], schema)),
                AccuracyTarget(
                    half_width=float(rng.choice(mix.half_widths)), confidence=CONFIDENCE
                ),
            )
        ]
        for place in chosen
    ]


def _ranged(rng: np.random.Generator, mix: Mix, schema: Schema) -> LinearQuery:
    if rng.random() >= mix.share_of_ranges:
        return counting()
    n_ages = schema.by_name["age"].size
    first, last = np.sort(rng.integers(0, n_ages, 2))
    inside = np.zeros(n_ages, dtype=np.int64)
    inside[first : last + 1] = 1
    return counting([Factor(("age",), inside)])


def _every_cell(scope: Scope, schema: Schema) -> Partition:
    shape = schema.sizes(scope)
    return Partition(scope, np.arange(schema.n_cells(scope), dtype=np.int64).reshape(shape))


def empty_table(schema: Schema, strategy: Strategy) -> PricingContext:
    """A table on which nothing was asked."""
    nothing = TableHistory(budget=Fraction(1000))
    return PricingContext(
        schema=schema,
        strategy=strategy,
        forecast=Forecast(Estimator(schema), nothing.raises.foreseen),
        price=Pricing(schema, nothing).price,
        ski_rental=SkiRental(schema),
        hindsight=Hindsight(schema),
        cost_without=nothing.cost.units_without,
        left=lambda: Fraction(1000),
        cost_alone=nothing.cost.units_alone,
    )


def measured(statements: Sequence[Sequence[Wanted]], schema: Schema) -> dict[str, float]:
    """Every figure of one batch."""
    found: dict[str, float] = {
        "n_answers": float(sum(one.block.n_rows for wanted in statements for one in wanted))
    }
    table = empty_table(schema, Strategy.AUTO)
    for strategy in (Strategy.AUTO, Strategy.QUERY):
        plan = bought_one_by_one(statements, replace(table, strategy=strategy))
        found[strategy] = float(table.price(plan).epsilon)
    begun = process_time()
    found["planned"] = plan_together(statements, table, ()).epsilon
    found["processor_seconds"] = process_time() - begun
    return found


def main() -> None:
    """Measure every mix and report."""
    quick = wants_quick("What a declared batch of group-bys costs.")
    (table,) = load(CONFIGURATION).tables
    figures, bars = {}, []
    for mix in MIXES[2:4] if quick else MIXES:
        found = figures[mix.name] = measured(drawn(mix, table.schema), table.schema)
        progress(f"{mix.name}: " + ", ".join(f"{name} {one:.4g}" for name, one in found.items()))
        ratio = found["planned"] / min(found["auto"], found["query"])
        bars.append(Bar(f"{mix.name}: planned over one by one", ratio, 1.0, ratio <= 1 + ROUNDING))
    run({"batches": figures}, bars)


if __name__ == "__main__":
    main()
