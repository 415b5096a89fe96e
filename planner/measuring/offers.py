"""Offers: what could be bought for a request, what was chosen, and what it is priced against.

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
        The columns that it answers queries on.
    plan : tuple of PlannedMeasurement
        Everything to buy for the request so far, this included.
    epsilon : Fraction
        What this adds to the table's cost.
    rent : Fraction
        What was paid before and would have been saved.
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
    """What to buy for a request, and for each aggregate the offers it was chosen from.

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
    prospect : Forecast
    price : callable
        `Gate.price`.
    rents : SkiRental
    left : callable
        What may still be spent on the table.
    """

    schema: Schema
    strategy: Strategy
    prospect: Forecast
    price: Callable[[Sequence[PlannedMeasurement]], Price]
    rents: SkiRental
    left: Callable[[], Fraction]
