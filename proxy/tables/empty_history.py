"""A table with an empty history: what it would cost there, and the widths that a default cost buys.

The same planner and the same pricing code run here on an empty history. So the results depend only
on the query and on public declarations, whatever anybody has asked before. Nothing here charges or
reads data.

The half-widths that a default cost buys: those of a statement that names no target.

A statement without a target gets the widths that its table's default cost would buy if nothing had
been bought before. So they follow from the statement and from public declarations alone. The same
statement has the same widths for everybody and asks for nothing more when it is asked again. What
the history knows makes it cheaper, and often free.

All blocks of a statement are widened to one number of records: a block whose rows change by at most
``b`` with one record gets the half-width ``s * b``. So an average, a sum and a count of the same
groups are about equally good, relative to what their public bounds allow. No block becomes narrower
than its own target. The smallest such ``s`` that the default cost pays is searched for: a price
falls about as fast as widths grow.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, TypeAlias

from accountant.gate import Gate
from cube.encoding import fingerprint
from inference import Estimator, RowEstimates
from planner.cache import BoundedCache
from planner.measuring import Hindsight, PurchasePlan, SkiRental, Strategy
from planner.workload import Wanted
from proxy.api import TableInfo
from proxy.monitoring import UNWATCHED
from proxy.tables.extent import Extent
from proxy.tables.snapshot import KnownHistory, TableSnapshot

N_PLANS_MAX: Final = 1024
OFFER_BYTES: Final = 2**14  # the size of a remembered offer, roughly
PLANS_BYTES_MAX: Final = 2**26

Plans: TypeAlias = BoundedCache[tuple[object, ...], PurchasePlan]


class EmptyHistory:
    """One table on an empty history. Thread-safe.

    Parameters
    ----------
    extent : Extent
        What of the table is served.
    """

    def __init__(self, info: TableInfo, extent: Extent, gate: Gate, strategy: Strategy) -> None:
        self.info = info
        self._extent = extent
        self._gate = gate
        self._strategy = strategy
        self._hindsight = Hindsight(extent.schema)
        self._plans: Plans = BoundedCache(n_entries_max=N_PLANS_MAX, n_bytes_max=PLANS_BYTES_MAX)

    @property
    def budget(self) -> Fraction:
        """The table's, on which plans depend."""
        return self._gate.history.budget

    def snapshot(self) -> TableSnapshot:
        """The table before any query, with its current budget."""
        known = KnownHistory(
            self._gate.history.without_charges(),
            Estimator(self._extent.schema),
            SkiRental(self._extent.schema),
            self._hindsight,
        )
        return _Remembering(self._extent, self._strategy, known, self._plans)

    def estimates(self, wanted: Sequence[Wanted]) -> list[RowEstimates]:
        """The estimates of every block's rows without any history: only what is public."""
        return self.snapshot().estimates(wanted)

    def bought(self, wanted: Sequence[Wanted]) -> PurchasePlan:
        """The purchases for all of these blocks at once on an empty history."""
        snapshot = self.snapshot()
        return snapshot.plan(wanted, snapshot.estimates(wanted))

    def price(self, wanted: Sequence[Wanted]) -> Fraction:
        """The price of all of these blocks on an empty history."""
        plan = self.bought(wanted)
        return self.snapshot().price(plan.planned, plan.counts).epsilon


class _Remembering(TableSnapshot):
    """A snapshot of an empty history; its plans hold for all snapshots with the same budget."""

    def __init__(
        self, extent: Extent, strategy: Strategy, known: KnownHistory, plans: Plans
    ) -> None:
        super().__init__(extent, strategy, known, UNWATCHED)
        self._plans = plans

    def plan(
        self,
        wanted: Sequence[Wanted],
        estimates: Sequence[RowEstimates],
        *,
        every_offer: bool = False,
    ) -> PurchasePlan:
        """The purchases, in the order of `wanted`."""
        asked = ((fingerprint(one.block), one.rule, one.target) for one in wanted)
        key = (self.charges.budget, every_offer, *asked)
        found = self._plans.get(key)
        if found is None:
            found = super().plan(wanted, estimates, every_offer=every_offer)
            n_offers = 1 + sum(map(len, found.offers))
            self._plans.put(key, found, n_bytes=n_offers * OFFER_BYTES)
        return found


N_TRIED_MAX: Final = 8  # numbers of records; each takes as long as planning the statement
CLOSE: Final = 0.93  # of the default cost: no smaller number is worth another look
AIMED: Final = 0.98  # of the default cost, for the price of the next one
N_KEPT_MAX: Final = 4096
BYTES_KEPT: Final = 512  # roughly, for each statement

Key: TypeAlias = tuple[object, ...]
Tried: TypeAlias = tuple[float, Fraction]  # a number of records, and the price of it


@dataclass(frozen=True, slots=True)
class DefaultWidth:
    """How far a statement's blocks are widened.

    Parameters
    ----------
    records : float
        The half-width of every block, in records of its largest value; 0 if all targets are paid.
    price : Fraction
        What it would cost if nothing had been bought; above the cost where nothing is cheaper.
    epsilon_of_half : Fraction
        The same of half of it.
    """

    records: float = 0.0
    price: Fraction = Fraction(0)
    epsilon_of_half: Fraction = Fraction(0)

    def of(self, wanted: Wanted) -> float:
        """The half-width of a block."""
        return max(wanted.target.half_width, self.records * unit_of(wanted))


class DefaultWidths:
    """What default costs buy of one table. Thread-safe.

    Parameters
    ----------
    fresh : EmptyHistory
        The table before anything was bought.
    """

    def __init__(self, fresh: EmptyHistory) -> None:
        self._fresh = fresh
        self._known: BoundedCache[Key, DefaultWidth] = BoundedCache(
            n_entries_max=N_KEPT_MAX, n_bytes_max=N_KEPT_MAX * BYTES_KEPT
        )

    def fitting(self, wanted: Sequence[Wanted], cost: Fraction) -> DefaultWidth:
        """The smallest widths found whose price is at most `cost`.

        Parameters
        ----------
        wanted : sequence of Wanted
            All blocks of a statement, each with the narrowest half-width that it may have.
        cost : Fraction
            Positive, in epsilon.

        Raises
        ------
        TooLarge, TooSlow, InvalidTarget
            As planning does.
        """
        asked = ((fingerprint(one.block), one.rule, one.target) for one in wanted)
        key = (self._fresh.budget, cost, *asked)
        found = self._known.get(key)
        if found is None:
            found = self._fitting(wanted, cost)
            self._known.put(key, found, n_bytes=BYTES_KEPT * len(wanted))
        return found

    def _fitting(self, wanted: Sequence[Wanted], cost: Fraction) -> DefaultWidth:
        price = self._price(wanted, 0.0)
        if price <= cost:
            return DefaultWidth()
        records = [one.target.half_width / unit_of(one) for one in wanted]
        dear, cheap = (min(records), price), None
        at = max(records) * float(price / cost) / AIMED
        for _ in range(N_TRIED_MAX):
            price = self._price(wanted, at)
            if price > cost:
                dear = at, price
            else:
                cheap = at, price
                if price >= CLOSE * cost:
                    break
            at = at * 2 * float(price / cost) if cheap is None else _between(dear, cheap, cost)
        if cheap is None:  # measuring it has a least price, which no width is below
            return DefaultWidth(*dear, self._price(wanted, dear[0] / 2))
        return DefaultWidth(*cheap, self._price(wanted, cheap[0] / 2))

    def _price(self, wanted: Sequence[Wanted], records: float) -> Fraction:
        width = DefaultWidth(records)
        return self._fresh.price(
            [replace(one, target=replace(one.target, half_width=width.of(one))) for one in wanted]
        )


def unit_of(wanted: Wanted) -> float:
    """What one record adds to a block's rows at most."""
    return float(wanted.block.query.bound) or 1.0


def _between(dear: Tried, cheap: Tried, cost: Fraction) -> float:
    """Where a price is likely, on a line between logarithms."""
    share, aimed = 0.5, AIMED * float(cost)
    high, low = float(dear[1]), float(cheap[1])
    if high > aimed > low > 0:
        share = math.log(high / aimed) / math.log(high / low)
    return dear[0] * math.pow(cheap[0] / dear[0], min(max(share, 0.1), 0.95))
