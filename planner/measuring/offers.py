"""Offers: what could be bought for a request, what is chosen, and what it is priced against.

Values only. How candidates are weighed and one is chosen is in `choose.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from accountant.cost.history_cost import Price
from cube.measurement import PlannedMeasurement
from cube.query import Scope
from cube.schema import Schema
from planner.measuring.forecast import Forecast
from planner.measuring.ski_rental import SkiRental
from planner.measuring.strategy import Strategy


@dataclass(frozen=True, slots=True)
class Offer:
    """A candidate, weighed and priced.

    Parameters
    ----------
    name : str
        See `candidates.py`.
    scope : tuple of str
        The columns of the queries that it can answer.
    plan : tuple of PlannedMeasurement
        Everything to buy for the request so far, this offer included.
    epsilon : Fraction
        What this offer adds to the table's cost.
    rent : Fraction
        The rent paid before that this offer would have saved.
    is_chosen : bool
    """

    name: str
    scope: Scope
    plan: tuple[PlannedMeasurement, ...]
    epsilon: Fraction
    rent: Fraction
    is_chosen: bool = False


@dataclass(frozen=True, slots=True)
class PurchasePlan:
    """What to buy for a request, and the offers for each aggregate among which it was chosen.

    An aggregate that needs nothing beyond the history and the plan so far has no offers.
    """

    planned: tuple[PlannedMeasurement, ...]
    offers: tuple[tuple[Offer, ...], ...]

    def epsilon(self, aggregate: int) -> Fraction:
        """What one aggregate adds to the table's cost."""
        chosen = (offer.epsilon for offer in self.offers[aggregate] if offer.is_chosen)
        return sum(chosen, Fraction(0))


@dataclass(frozen=True, slots=True)
class PricingContext:
    """What purchases are weighed and priced against: the state of one table.

    Parameters
    ----------
    schema : Schema
    strategy : Strategy
    forecast : Forecast
    price : callable
        `Gate.price`.
    ski_rental : SkiRental
    left : callable
        What may still be spent on the table.
    """

    schema: Schema
    strategy: Strategy
    forecast: Forecast
    price: Callable[[Sequence[PlannedMeasurement]], Price]
    ski_rental: SkiRental
    left: Callable[[], Fraction]
