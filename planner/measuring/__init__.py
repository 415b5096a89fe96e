"""Decides what to measure if the history does not suffice: candidates, weights, prices, choice.

Here: the strategies, the ski rental, and the forecast of the half-widths that a purchase gives.
Not here: many statements together (`batch/`), and the charge itself (the accountant's gate).
"""

from planner.measuring.candidates import Strategy
from planner.measuring.choose import meets, plan_purchases
from planner.measuring.hindsight import Hindsight
from planner.measuring.offers import Offer, PricingContext, PurchasePlan
from planner.measuring.ski_rental import SkiRental
from planner.measuring.unit_counts import (
    CountPart,
    CountWanted,
    known_unit_count,
    plan_unit_counts,
    unit_count_of,
)
from planner.measuring.weighing import Forecast
from planner.measuring.weights import (
    LAPLACE,
    LATTICE_SHARE,
    ONLY_LAPLACE,
    ROUNDING_MARGIN,
    GaussianKind,
    GaussianOffer,
    NoiseKind,
    offered_kinds,
    weight_for,
)

__all__ = [
    "LAPLACE",
    "LATTICE_SHARE",
    "ONLY_LAPLACE",
    "ROUNDING_MARGIN",
    "CountPart",
    "CountWanted",
    "Forecast",
    "GaussianKind",
    "GaussianOffer",
    "Hindsight",
    "NoiseKind",
    "Offer",
    "PricingContext",
    "PurchasePlan",
    "SkiRental",
    "Strategy",
    "known_unit_count",
    "meets",
    "offered_kinds",
    "plan_purchases",
    "plan_unit_counts",
    "unit_count_of",
    "weight_for",
]
