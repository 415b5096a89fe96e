"""Batches of statements over many columns: never dearer than one by one, and every target met."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from accountant.gate.pricing import Pricing
from accountant.ledger.history.payments import Spending
from accountant.ledger.history.table_history import TableHistory
from accountant.ledger.values import AppendOnly
from cube.axis import CategoryAxis, IntegerAxis
from cube.measurement import Measurement, PlannedMeasurement, Precision
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Scope, Term, counting
from cube.schema import Schema
from cube.target import AccuracyTarget
from inference.estimator import Estimator
from planner.batch.plan import BatchPlan
from planner.batch.promise import promised
from planner.batch.together import bought_one_by_one, plan_together
from planner.measuring.candidates import Strategy
from planner.measuring.hindsight import Hindsight
from planner.measuring.offers import PricingContext
from planner.measuring.ski_rental import SkiRental
from planner.measuring.weighing import Forecast
from planner.workload import Wanted

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 6, "f": 3}
SCHEMA = Schema(
    table="t",
    axes=(
        *(
            CategoryAxis(name=name, values=tuple(map(str, range(size))))
            for name, size in SIZES.items()
        ),
        IntegerAxis(name="age", low=0, high=79),
    ),
    n_records_max=10_000,
)
SECONDS = 3.0
SECONDS_FEW = 0.5  # where any plan will do, finished or not
ONLINE_EXCESS_MAX = 1.005  # the estimator combines rows within limits, so that the order matters


def context(
    history: Sequence[Measurement] = (), strategy: Strategy = Strategy.QUERY
) -> PricingContext:
    """A table on which these measurements were bought."""
    known = TableHistory(budget=Fraction(100), measurements=AppendOnly(history))
    planned = [PlannedMeasurement(one.block, one.weight) for one in history if not one.is_gaussian]
    cost = known.cost.charged(planned)
    known = TableHistory(
        budget=Fraction(100),
        measurements=AppendOnly(history),
        cost=cost,
        spending=Spending().raised("", cost.table_cost().units),
    )
    estimator = Estimator(SCHEMA)
    estimator.add(history)
    pricing = Pricing(SCHEMA, known)
    return PricingContext(
        schema=SCHEMA,
        strategy=strategy,
        forecast=Forecast(estimator, known.raises.foreseen),
        price=pricing.price,
        ski_rental=SkiRental(SCHEMA),
        hindsight=Hindsight(SCHEMA),
        cost_without=cost.units_without,
        left=lambda: Fraction(100),
        cost_alone=cost.units_alone,
    )


def measured(plan: Sequence[PlannedMeasurement], table: PricingContext) -> list[Measurement]:
    return [table.forecast.foreseen(one) for one in plan]


def group_by(*scope: str, half_width: float = 100.0, ages: tuple[int, int] | None = None) -> Wanted:
    """``COUNT(*) .. GROUP BY scope``, perhaps ``WHERE age BETWEEN ..``."""
    query = counting()
    if ages is not None:
        inside = np.zeros(80, dtype=np.int64)
        inside[ages[0] : ages[1] + 1] = 1
        query = LinearQuery((Term(Fraction(1), (Factor(("age",), inside),)),))
    axes = tuple(sorted(scope))
    shape = tuple(SIZES[name] for name in axes)
    labels = np.arange(np.prod(shape, dtype=int), dtype=np.int64).reshape(shape)
    return Wanted(
        QueryBlock(query, Partition(axes, labels) if axes else None),
        AccuracyTarget(half_width=half_width, confidence=0.95),
    )


def drawn(seed: int, share_of_ranges: float) -> list[list[Wanted]]:
    rng = np.random.default_rng(seed)
    statements = []
    for _ in range(8):
        scope: Scope = tuple(rng.permutation(sorted(SIZES))[: rng.integers(1, 4)])
        first, last = sorted(int(age) for age in rng.integers(0, 80, 2))
        ages = (first, last) if rng.random() < share_of_ranges else None
        half_width = float(rng.choice([50.0, 100.0, 200.0]))
        statements.append([group_by(*scope, half_width=half_width, ages=ages)])
    return statements


def check_kept(statements: Sequence[Sequence[Wanted]], plan: BatchPlan, on: PricingContext) -> None:
    """Every half-width is what is promised, and meets its target."""
    queries = [one for wanted in statements for one in wanted]
    widths = promised(plan.measurements, queries, on.forecast)
    for query, width, told in zip(queries, widths, plan.half_widths, strict=True):
        assert width <= query.target.half_width
        assert told == (width,)
    assert plan.epsilon == float(on.price(plan.measurements).epsilon)


def epsilon_one_by_one(statements: Sequence[Sequence[Wanted]], on: PricingContext) -> float:
    return float(on.price(bought_one_by_one(statements, on)).epsilon)


@pytest.mark.parametrize("strategy", [Strategy.QUERY, Strategy.AUTO])
@pytest.mark.parametrize("share_of_ranges", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_a_batch_costs_at_most_what_it_costs_one_by_one(
    seed: int, share_of_ranges: float, strategy: Strategy
) -> None:
    table, statements = context(strategy=strategy), drawn(seed, share_of_ranges)
    plan = plan_together(statements, table, (), seconds=SECONDS_FEW)
    check_kept(statements, plan, table)
    assert plan.epsilon <= epsilon_one_by_one(statements, table) * ONLINE_EXCESS_MAX


def test_all_pairs_of_columns_share_what_they_say_of_each_column() -> None:
    names = sorted(SIZES)
    statements = [[group_by(a, b)] for i, a in enumerate(names) for b in names[i + 1 :]]
    table = context()
    plan = plan_together(statements, table, (), seconds=20 * SECONDS)  # on a busy machine, too
    check_kept(statements, plan, table)
    assert plan.epsilon < 0.93 * epsilon_one_by_one(statements, table)


def test_with_no_time_the_plan_is_the_one_of_asking_one_by_one() -> None:
    table, statements = context(), drawn(1, 0.0)
    plan = plan_together(statements, table, (), seconds=0.0)
    check_kept(statements, plan, table)
    assert plan.epsilon == pytest.approx(epsilon_one_by_one(statements, table), rel=5e-3)


def test_what_is_known_is_raised_and_not_bought_again() -> None:
    wide = [[group_by("a", "b", half_width=200.0)], [group_by("a", "c", half_width=200.0)]]
    before = context()
    history = measured(plan_together(wide, before, (), seconds=SECONDS).measurements, before)
    table = context(history)
    assert plan_together(wide, table, history).measurements == ()
    strict = [[group_by("a", "b")], [group_by("a", "c")]]
    plan = plan_together(strict, table, history, seconds=SECONDS)
    check_kept(strict, plan, table)
    afresh = plan_together(strict, before, (), seconds=SECONDS)
    assert plan.epsilon <= 0.55 * afresh.epsilon


def test_rows_with_gaussian_noise_are_known_and_not_raised() -> None:
    block = group_by("a", "b").block
    gaussian = Measurement(block, Precision.at_least(Fraction(1, 2 * 60**2)), 20, 60.0, (0,) * 6)
    statements = [[group_by("a", "b")], [group_by("b", "c")]]
    table = context([gaussian])
    plan = plan_together(statements, table, [gaussian], seconds=SECONDS)
    check_kept(statements, plan, table)
    assert all(one.raised_from is None for one in plan.measurements)


def test_one_by_one_raises_rows_to_their_last_weight() -> None:
    table = context()
    statements = [[group_by("a", half_width=width)] for width in (200.0, 100.0, 50.0)]
    (bought,) = bought_one_by_one(statements, table)
    (alone,) = bought_one_by_one(statements[-1:], table)
    assert bought.laplace_weight.units == pytest.approx(alone.laplace_weight.units, rel=1e-2)
    assert bought.raised_from is None
