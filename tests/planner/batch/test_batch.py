"""Batches as measurements: purchases are whole-number blocks, and meet the promised half-widths."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from accountant.cost.history_cost import CostState
from accountant.noise.lattice_noise import LatticeNoise
from cube.axis import BooleanAxis, IntegerAxis
from cube.measurement import UNITS_PER_EPSILON, Measurement, PlannedMeasurement, Weight
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Term, counting
from cube.refusals import InvalidTarget
from cube.schema import Schema
from cube.target import AccuracyTarget
from inference.estimator import Estimator
from inference.posterior import Posterior
from planner.batch import plan as batch
from planner.batch.plan import BatchPlan, plan_batch
from planner.workload import Wanted

SCHEMA = Schema(
    table="people",
    axes=(
        IntegerAxis(name="age", low=0, high=39),
        BooleanAxis(name="member"),
        IntegerAxis(name="visits", low=0, high=9),
    ),
    n_records_max=10_000,
)
TARGET = AccuracyTarget(half_width=50.0, confidence=0.95)


def ages(first: int, last: int, scale: Fraction = Fraction(1)) -> LinearQuery:
    inside = np.zeros(40, dtype=np.int64)
    inside[first : last + 1] = 1
    return LinearQuery((Term(scale, (Factor(("age",), inside),)),))


def ask(query: LinearQuery, half_width: float = 50.0) -> Wanted:
    return Wanted(QueryBlock(query), AccuracyTarget(half_width=half_width, confidence=0.95))


def by(axis: str) -> QueryBlock:
    size = SCHEMA.by_name[axis].size
    return QueryBlock(counting(), Partition((axis,), np.arange(size, dtype=np.int64)))


def measured(planned: PlannedMeasurement, supersedes: int | None = None) -> Measurement:
    noise = LatticeNoise.for_weight(planned.laplace_weight)
    return Measurement(
        block=planned.block,
        weight=planned.weight,
        lattice_bits=noise.lattice_bits,
        noise_scale=noise.noise_scale,
        lattice_values=(0,) * planned.block.n_rows,
        supersedes=supersedes,
    )


def check_kept(
    queries: Sequence[Wanted], plan: BatchPlan, history: Sequence[Measurement] = ()
) -> None:
    """The estimator that answers finds every query as narrow as promised."""
    estimator = Estimator(SCHEMA)
    bought = [measured(one, one.raised_from) for one in plan.measurements]
    estimator.add([*history, *bought])
    for query, promised in zip(queries, plan.half_widths, strict=True):
        rows = estimator.estimate(query.block, query.target.confidence)
        for row, half_width in zip(rows, promised, strict=True):
            assert isinstance(row, Posterior)
            assert half_width <= query.target.half_width
            assert row.half_width(query.target.confidence) <= half_width * (1 + 1e-6)


def cost(measurements: Sequence[PlannedMeasurement]) -> float:
    found = CostState().charged(measurements).table_cost()
    assert found.exact
    return float(Fraction(found.units, UNITS_PER_EPSILON))


def test_one_query_is_bought_at_the_weight_of_its_target() -> None:
    queries = [ask(ages(3, 20))]
    plan = plan_batch(queries, SCHEMA)
    assert cost(plan.measurements) == pytest.approx(math.log(20) / 50, rel=1e-5)
    assert plan.epsilon == pytest.approx(cost(plan.measurements), rel=1e-6)
    check_kept(queries, plan)


def test_a_multiple_of_a_query_costs_the_multiple() -> None:
    queries = [ask(ages(3, 20, Fraction(-5, 2)))]
    plan = plan_batch(queries, SCHEMA)
    assert cost(plan.measurements) == pytest.approx(2.5 * math.log(20) / 50, rel=1e-5)
    check_kept(queries, plan)


def test_a_group_by_is_one_block_at_the_price_of_one_row() -> None:
    queries = [Wanted(by("age"), TARGET)]
    plan = plan_batch(queries, SCHEMA)
    assert len(plan.measurements) == 1
    assert plan.measurements[0].block.n_rows == 40
    assert cost(plan.measurements) == pytest.approx(math.log(20) / 50, rel=1e-5)
    check_kept(queries, plan)


def test_overlapping_ranges_cost_less_than_one_by_one_and_all_are_met() -> None:
    rng = np.random.default_rng(3)
    ends = np.sort(rng.integers(0, 40, size=(8, 2)), axis=1)
    queries = [ask(ages(int(a), int(b)), 50.0 + 5 * k) for k, (a, b) in enumerate(ends)]
    plan = plan_batch(queries, SCHEMA)
    alone = [plan_batch([query], SCHEMA).measurements[0] for query in queries]
    assert cost(plan.measurements) < 0.7 * cost(alone)
    assert cost(plan.measurements) == pytest.approx(plan.epsilon, rel=1e-6)
    check_kept(queries, plan)


def test_queries_on_several_columns_share_their_cells() -> None:
    member = Factor(("member",), np.array([0, 1], dtype=np.int64))
    joint = LinearQuery((Term(Fraction(1), (*ages(10, 30).terms[0].factors, member)),))
    queries = [Wanted(by("member"), TARGET), ask(joint), ask(ages(10, 30)), ask(counting())]
    plan = plan_batch(queries, SCHEMA)
    check_kept(queries, plan)
    assert cost(plan.measurements) < cost(
        [one for query in queries for one in plan_batch([query], SCHEMA).measurements]
    )


def test_what_the_history_answers_is_not_bought_again() -> None:
    queries = [ask(ages(0, 9)), ask(ages(5, 20))]
    first = plan_batch(queries, SCHEMA)
    history = [measured(one) for one in first.measurements]
    again = plan_batch(queries, SCHEMA, history)
    assert again.measurements == ()
    assert again.epsilon == 0
    check_kept(queries, again, history)


def test_a_stricter_batch_raises_what_was_bought() -> None:
    queries = [Wanted(by("age"), TARGET)]
    history = [measured(one) for one in plan_batch(queries, SCHEMA).measurements]
    strict = [Wanted(by("age"), AccuracyTarget(half_width=25.0, confidence=0.95))]
    plan = plan_batch(strict, SCHEMA, history)
    assert [one.raised_from for one in plan.measurements] == [0]
    assert plan.epsilon == pytest.approx(math.log(20) / 50, rel=1e-4)
    check_kept(strict, plan, history)


def test_a_measurement_that_was_replaced_is_neither_used_nor_raised() -> None:
    weak = PlannedMeasurement(by("age"), Weight.at_least(0.02))
    strong = PlannedMeasurement(by("age"), Weight.at_least(0.04))
    history = [measured(weak), measured(strong, supersedes=0)]
    queries = [Wanted(by("age"), TARGET)]
    plan = plan_batch(queries, SCHEMA, history)
    assert [one.raised_from for one in plan.measurements] == [1]
    assert plan.epsilon == pytest.approx(math.log(20) / 50 - 0.04, rel=1e-4)


def test_constants_and_groups_without_a_coefficient_cost_nothing() -> None:
    inside = np.zeros(40, dtype=np.int64)
    inside[:10] = 1
    young = LinearQuery((Term(Fraction(1), (Factor(("age",), inside),)),))
    groups = Partition(("age",), np.repeat(np.arange(2, dtype=np.int64), 20))
    queries = [ask(LinearQuery((), Fraction(7))), Wanted(QueryBlock(young, groups), TARGET)]
    plan = plan_batch(queries, SCHEMA)
    assert plan.half_widths[0] == (0.0,)
    assert plan.half_widths[1][1] == 0.0
    assert cost(plan.measurements) == pytest.approx(math.log(20) / 50, rel=1e-5)
    assert plan_batch(queries[:1], SCHEMA).measurements == ()


def test_columns_too_many_for_common_cells_are_planned_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queries = [Wanted(by("age"), TARGET), Wanted(by("visits"), TARGET)]
    monkeypatch.setattr(batch, "N_FACTOR_CELLS_MAX", 50)
    plan = plan_batch(queries, SCHEMA)
    assert cost(plan.measurements) == pytest.approx(2 * math.log(20) / 50, rel=1e-5)
    check_kept(queries, plan)


def test_a_batch_beyond_every_limit_is_bought_as_it_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queries = [Wanted(by("age"), TARGET), ask(ages(0, 9))]
    monkeypatch.setattr(batch, "N_ATOMS_MAX", 3)
    plan = plan_batch(queries, SCHEMA)
    assert cost(plan.measurements) == pytest.approx(2 * math.log(20) / 50, rel=1e-5)
    check_kept(queries, plan)


def test_a_target_that_cannot_be_met_is_refused() -> None:
    with pytest.raises(InvalidTarget, match="almost no noise"):
        plan_batch([ask(ages(0, 9)), ask(ages(5, 20), 1e-9)], SCHEMA)


def test_a_scope_with_too_many_answers_is_bought_as_it_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch, "N_ROWS_MAX", 39)
    queries = [Wanted(by("age"), TARGET), Wanted(by("member"), TARGET)]
    plan = plan_batch(queries, SCHEMA)
    assert cost(plan.measurements) == pytest.approx(2 * math.log(20) / 50, rel=1e-5)
    check_kept(queries, plan)
