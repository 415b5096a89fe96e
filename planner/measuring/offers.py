"""Describes offers: the possible purchases for a request, with their prices, and the chosen one.

Values only. How candidates are weighed and one is chosen is in `choose.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType

from accountant.cost import Price
from cube.holders import Holders
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement
from cube.query import Scope
from cube.schema import Schema
from cube.statistic import PlannedUnitCount
from planner.measuring.candidates import Strategy
from planner.measuring.hindsight import Hindsight
from planner.measuring.ski_rental import RentedRows, SkiRental
from planner.measuring.weighing import Forecast
from planner.measuring.weights import ONLY_LAPLACE, OfferedKinds


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
        Everything to buy for the request so far, this offer included; a count of units is no row,
        and not in it.
    epsilon : Fraction
        What this offer adds to the table's cost.
    rent : Fraction
        What the table's cost would fall by without the rows that this offer replaces.
    opening : Fraction
        The part of the epsilon that pays once for all Gaussian noise of the table.
    worth : Fraction
        The most that it may cost to be chosen instead of the rent.
    is_gaussian : bool
        Whether it would be measured with Gaussian noise; Laplace otherwise.
    is_chosen : bool
    n_served : int
        How many refreshes it serves, this one included, on a table that grows (`choose.py`).
    """

    name: str
    scope: Scope
    plan: tuple[PlannedMeasurement, ...]
    epsilon: Fraction
    rent: Fraction
    opening: Fraction = Fraction(0)
    worth: Fraction = Fraction(0)
    is_gaussian: bool = False
    is_chosen: bool = False
    n_served: int = 1

    @property
    def weighed(self) -> Fraction:
        """What it is compared by: whether to open the Gaussian account is decided beforehand."""
        return (self.epsilon - self.opening) / self.n_served


@dataclass(frozen=True, slots=True)
class PurchasePlan:
    """What to buy for a request, and the offers for each aggregate among which it was chosen.

    An aggregate that needs nothing beyond the history and the plan so far has no offers. `counts`
    are the counts of units, which are no rows.
    """

    planned: tuple[PlannedMeasurement, ...]
    offers: tuple[tuple[Offer, ...], ...]
    counts: tuple[PlannedUnitCount, ...] = ()

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
    hindsight : Hindsight
    cost_without : callable
        What the rows of the history would cost without some of them, in units of 2**-40 epsilon.
    left : callable
        What may still be spent on the table.
    cost_alone : callable
        What some rows would cost, had nothing else been bought, in units of 2**-40 epsilon.
    offered : OfferedKinds
        The kinds of noise that may be bought now.
    holders : Holders, optional
        Of a federated table.
    caps : mapping of int to Fraction
        The most epsilon that some holders may spend, by their levels.
    """

    schema: Schema
    strategy: Strategy
    forecast: Forecast
    price: Callable[[Sequence[PlannedMeasurement]], Price]
    ski_rental: SkiRental
    hindsight: Hindsight
    cost_without: Callable[[Sequence[PlannedMeasurement]], int]
    left: Callable[[], Fraction]
    cost_alone: Callable[[Sequence[PlannedMeasurement]], int]
    offered: OfferedKinds = ONLY_LAPLACE
    holders: Holders | None = None
    caps: Mapping[int, Fraction] = field(default_factory=lambda: MappingProxyType({}))

    def cost_of_rows(self) -> Fraction:
        """What the rows of the history cost."""
        return Fraction(self.cost_without(()), UNITS_PER_EPSILON)

    def rent(self, rented: Sequence[RentedRows], alone: Fraction) -> Fraction:
        """What the table's cost would fall by, had some rows not been bought; at most `alone`.

        This is `rent_alone` of these rows: it bounds the fall where costs are upper bounds.
        """
        if not rented:
            return Fraction(0)
        units = self.cost_without(()) - self.cost_without([one.paid for one in rented])
        return min(Fraction(max(0, units), UNITS_PER_EPSILON), alone)

    def rent_alone(self, rented: Sequence[RentedRows]) -> Fraction:
        """What rows would cost by themselves: at least their rent, and found without the history.

        What was paid for a cell falls by no more than they cost it, so the largest sum does.
        """
        return Fraction(self.cost_alone([one.paid for one in rented]), UNITS_PER_EPSILON)
