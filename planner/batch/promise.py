"""What a batch plan promises, by the estimator that will answer; raised where that falls short.

The optimiser certifies its plan with coefficients of its own. The estimator minimises variance,
over all of the history, and a smaller variance can go with a slightly wider interval. So the plan
is checked with the very code that will answer, and its weights are raised together until that
agrees.
"""

from collections.abc import Sequence
from dataclasses import replace

from cube.measurement import WEIGHT_UNITS_MAX, PlannedMeasurement, Weight
from cube.refusals import InvalidTarget
from planner.batch.plan import BatchPlan
from planner.measuring.forecast import Forecast
from planner.measuring.weights import weight_for
from planner.workload import Wanted

N_RAISES_MAX = 20
MARGIN = 1 + 2.0**-20  # so that rounding does not leave a target missed by a hair


def with_kept_promises(plan: BatchPlan, queries: Sequence[Wanted], prospect: Forecast) -> BatchPlan:
    """The plan at weights that the estimator promises every target for.

    Raises
    ------
    InvalidTarget
        If no weights are enough.
    """
    measurements = plan.measurements
    for _ in range(N_RAISES_MAX):
        widths = [prospect.half_width(query.block, query.target, measurements) for query in queries]
        excess = [
            width / query.target.half_width for width, query in zip(widths, queries, strict=True)
        ]
        worst = max(excess, default=0.0)
        if worst <= 1:
            return replace(
                plan, measurements=measurements, half_widths=tuple((width,) for width in widths)
            )
        if measurements:
            measurements = tuple(_raised(planned, worst * MARGIN) for planned in measurements)
        else:
            measurements = (_itself(queries[excess.index(worst)], prospect),)
    raise InvalidTarget(
        "The targets of the batch are not met together.", hint="Ask for wider intervals."
    )


def _raised(planned: PlannedMeasurement, times: float) -> PlannedMeasurement:
    units = min(int(planned.weight.units * times) + 1, WEIGHT_UNITS_MAX)
    return replace(planned, weight=Weight(units))


def _itself(query: Wanted, prospect: Forecast) -> PlannedMeasurement:
    """The query's own rows at a weight that is enough without any history."""
    row, multiplier = query.block.primitive
    weight = weight_for(query.target, multiplier)
    place = prospect.estimator.history.most_precise(row)
    if place is not None and prospect.estimator.history[place].weight >= weight:
        place = None
    return PlannedMeasurement(row, weight, place)
