"""Checks a batch plan's half-widths with the estimator that will answer; raises weights if needed.

The optimiser certifies its plan with coefficients of its own. The estimator minimises variance over
the whole history, and a smaller variance can come with a slightly wider interval. So the plan is
checked with the same code that will answer, and its weights are raised together until every target
is met there too.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from cube.measurement import WEIGHT_UNITS_MAX, PlannedMeasurement, Weight
from cube.refusals import InvalidTarget
from planner.batch.plan import BatchPlan
from planner.measuring import Forecast, weight_for
from planner.workload import Wanted

N_RAISES_MAX = 20
MARGIN = 1 + 2.0**-20  # so that rounding does not leave a target just missed


def promised(
    measurements: Sequence[PlannedMeasurement], queries: Sequence[Wanted], forecast: Forecast
) -> tuple[float, ...]:
    """The half-width of each query, its widest row's, once a plan is bought."""
    beside = forecast.with_planned(measurements)
    return tuple(beside.half_width(query.block, query.target) for query in queries)


def with_kept_promises(
    measurements: Sequence[PlannedMeasurement], queries: Sequence[Wanted], forecast: Forecast
) -> BatchPlan:
    """The plan at weights at which the estimator meets every target; its epsilon is left at 0.

    Raises
    ------
    InvalidTarget
        If no weights are enough.
    """
    for _ in range(N_RAISES_MAX):
        widths = promised(measurements, queries, forecast)
        excess = [
            width / query.target.half_width for width, query in zip(widths, queries, strict=True)
        ]
        worst = max(excess, default=0.0)
        if worst <= 1:
            return BatchPlan(tuple(measurements), tuple((width,) for width in widths), 0.0)
        if measurements and math.isfinite(worst):
            measurements = [_raised(planned, worst * MARGIN) for planned in measurements]
        else:
            query = queries[excess.index(worst)]
            measurements = [*measurements, _itself(query, forecast)]
    raise InvalidTarget(
        "No plan was found that meets all targets of the batch.", hint="Ask for wider intervals."
    )


def _raised(planned: PlannedMeasurement, times: float) -> PlannedMeasurement:
    units = min(int(planned.weight.units * times) + 1, WEIGHT_UNITS_MAX)
    return replace(planned, weight=Weight(units))


def _itself(query: Wanted, forecast: Forecast) -> PlannedMeasurement:
    """The query's own rows, at a weight that suffices without any history."""
    row, multiplier = query.block.primitive
    weight = weight_for(query.target, multiplier)
    place = forecast.estimator.history.most_precise(row)
    if place is not None:
        earlier = forecast.estimator.history[place]
        if earlier.is_gaussian or earlier.laplace_weight >= weight:
            place = None
    return PlannedMeasurement(row, weight, place)
