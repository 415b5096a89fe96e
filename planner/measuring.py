"""What to measure when the history does not suffice: the query itself, at the price of its target.

A Laplace answer of weight ``w`` has ``Pr(|noise| <= h) = 1 - exp(-w h)`` (Xiao & Xiong 2012, thm
5.3), so ``w = ln(1 / (1 - confidence)) / half_width`` for a row with unit multiplier. Every number
used here is public: targets and multipliers, never noisy values.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from cube.encoding import fingerprint
from cube.measurement import UNITS_PER_EPSILON, WEIGHT_UNITS_MAX, PlannedMeasurement, Weight
from cube.refusals import InvalidTarget
from cube.target import AccuracyTarget
from inference.posterior import NotEstimable, Posterior
from planner.workload import Aggregate

# The lattice step is at most 2**-20 of the noise scale and widens the interval by as much; scales
# are rounded up by at most 2**-29 of themselves before an interval is read off.
LATTICE_SHARE = 2.0**-20
ROUNDING_MARGIN = 2.0**-28

RowEstimate = Posterior | NotEstimable


def meets(estimates: Sequence[RowEstimate], target: AccuracyTarget) -> bool:
    """Whether every row is known as accurately as the target asks."""
    return all(
        isinstance(estimate, Posterior)
        and estimate.half_width(target.confidence) <= target.half_width
        for estimate in estimates
    )


def weight_for(target: AccuracyTarget, multiplier: Fraction) -> Weight:
    """The smallest weight at which a fresh answer to ``multiplier * row`` meets the target.

    Raises
    ------
    InvalidTarget
        If the target asks for less noise than one thousandth of a record.
    """
    nats = -math.log1p(-target.confidence) + LATTICE_SHARE
    # Multiplied before it is divided: a half_width over the multiplier could vanish in a float.
    rate = nats * (1 + ROUNDING_MARGIN) * abs(float(multiplier)) / target.half_width
    if rate * UNITS_PER_EPSILON >= WEIGHT_UNITS_MAX:
        raise InvalidTarget(
            f"half_width {target.half_width:g} at confidence {target.confidence:g} asks for "
            "practically no noise.",
            hint="Ask for a wider interval.",
        )
    return Weight.at_least(rate)


def plan_measurements(
    aggregates: Sequence[Aggregate],
    estimates: Sequence[Sequence[RowEstimate]],
    target: AccuracyTarget,
) -> tuple[PlannedMeasurement, ...]:
    """The measurements that bring every aggregate to the target.

    Parameters
    ----------
    aggregates : sequence of Aggregate
    estimates : sequence of (sequence of Posterior or NotEstimable)
        What the history says of the rows of each aggregate.
    target : AccuracyTarget

    Returns
    -------
    tuple of PlannedMeasurement
        At most one for each distinct row; empty if the history suffices.
    """
    planned: dict[str, PlannedMeasurement] = {}
    for aggregate, known in zip(aggregates, estimates, strict=True):
        if meets(known, target):
            continue
        block, multiplier = aggregate.block.primitive
        weight = weight_for(target, multiplier)
        name = fingerprint(block)
        if name not in planned or planned[name].weight < weight:
            planned[name] = PlannedMeasurement(block, weight)
    return tuple(planned.values())
