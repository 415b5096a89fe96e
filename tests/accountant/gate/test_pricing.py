"""A price does not depend on the prices that were computed before it."""

from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.cost.history_cost import N_PRICED_KEPT, CostState
from cube.measurement import PlannedMeasurement, Weight
from cube.query import QueryBlock, counting
from tests.accountant.cost.test_cost import brute_force_cost, planned

few = st.lists(planned(), max_size=3)
# Each next plan keeps some of the rows at the beginning of the last, and goes on in its own way.
trips = st.lists(st.tuples(st.integers(0, 6), few), min_size=1, max_size=2 * N_PRICED_KEPT)


def plans_of(trip: list[tuple[int, list[PlannedMeasurement]]]) -> list[list[PlannedMeasurement]]:
    plans: list[list[PlannedMeasurement]] = [[]]
    for n_kept, further in trip:
        plans.append([*plans[-1][:n_kept], *further])
    return plans[1:]


@settings(deadline=None)
@given(few, trips)
def test_a_price_does_not_depend_on_those_asked_before(
    history: list[PlannedMeasurement], trip: list[tuple[int, list[PlannedMeasurement]]]
) -> None:
    state = CostState().charged(history)
    for plan in plans_of(trip):
        found = state.cost_with(plan)
        assert found.exact
        assert found.units == brute_force_cost([*history, *plan])


@settings(deadline=None)
@given(few, trips, st.integers(1, 12))
def test_bounds_that_go_on_from_one_another_never_under_report(
    history: list[PlannedMeasurement],
    trip: list[tuple[int, list[PlannedMeasurement]]],
    n_cells_max: int,
) -> None:
    state = CostState(n_cells_max=n_cells_max).charged(history)
    for plan in plans_of(trip):
        found, truth = state.cost_with(plan), brute_force_cost([*history, *plan])
        assert found.units == truth if found.exact else found.units >= truth


@settings(deadline=None)
@given(few, trips)
def test_what_is_charged_after_pricing_costs_what_it_was_priced_at(
    history: list[PlannedMeasurement], trip: list[tuple[int, list[PlannedMeasurement]]]
) -> None:
    state = CostState().charged(history)
    plans = plans_of(trip)
    prices = [state.cost_with(plan) for plan in plans]
    for plan, price in zip(plans, prices, strict=True):
        assert state.charged(plan).table_cost() == price


def test_another_weight_in_the_middle_of_a_plan_is_another_plan() -> None:
    everyone = QueryBlock(counting())
    light, heavy, last = (PlannedMeasurement(everyone, Weight(units)) for units in (1, 5, 2))
    state = CostState()
    assert state.cost_with([light, last]).units == 3
    assert state.cost_with([heavy, last]).units == 7
    assert state.cost_with([light]).units == 1
