"""The half-widths that a default cost buys: those of a statement that names no target.

A statement without a target gets at least the widths that its table's default cost would buy if
nothing had been bought before. These follow from the statement and from public declarations alone.
Where the history knows as much already, the answer is free: so is every statement that is asked
again. Otherwise the default cost buys what it can on top of what the history knows.

All blocks of a statement are widened to one number of records: a block whose rows change by at most
``b`` with one record gets the half-width ``s * b``. So an average, a sum and a count of the same
groups are about equally good, relative to what their public bounds allow. No block becomes narrower
than its own target. The smallest such ``s`` that the default cost pays is searched for: a price
falls about as fast as widths grow.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, TypeAlias

from cube.encoding import fingerprint
from planner.cache import BoundedCache
from planner.workload import Wanted
from proxy.tables.empty_history import EmptyHistory

N_TRIED_MAX: Final = 8  # numbers of records; each takes as long as planning the statement
CLOSE: Final = 0.93  # of the default cost: no smaller number is worth another look
AIMED: Final = 0.98  # of the default cost, for the price of the next one
N_KEPT_MAX: Final = 4096
BYTES_KEPT: Final = 512  # the size of what is kept of a statement, roughly
NARROWED: Final = 1 / 8  # of the widths of an empty history, that a known one may give

Key: TypeAlias = tuple[object, ...]
Tried: TypeAlias = tuple[float, Fraction]  # a number of records, and the price of it
Prices: TypeAlias = Callable[[Sequence[Wanted]], Fraction]  # what it costs to know all as wanted


@dataclass(frozen=True, slots=True)
class DefaultWidth:
    """How far a statement's blocks are widened.

    Parameters
    ----------
    records : float
        The half-width of every block, in records of its largest value; 0 if all targets are paid.
    epsilon_of_half : Fraction
        About what half of it would cost.
    """

    records: float = 0.0
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
        asked = ((fingerprint(one.block), one.groups_max, one.target) for one in wanted)
        key = (self._fresh.budget, cost, *asked)
        found = self._known.get(key)
        if found is None:
            found = self._fitting(wanted, cost)
            self._known.put(key, found, n_bytes=BYTES_KEPT * len(wanted))
        return found

    def _fitting(self, wanted: Sequence[Wanted], cost: Fraction) -> DefaultWidth:
        narrowest = self._fresh.price(wanted)
        if narrowest <= cost:
            return DefaultWidth()
        least, most = _range(wanted)
        records = most * float(narrowest / cost) / AIMED
        return _fitted(self._fresh.price, wanted, cost, records, (least, narrowest))


def on_top(
    prices: Prices, wanted: Sequence[Wanted], cost: Fraction, first: DefaultWidth
) -> DefaultWidth:
    """The widths that a default cost buys on top of what a history knows.

    Parameters
    ----------
    prices : callable
        The price of blocks with the history as it is now.
    wanted, cost
        As for `DefaultWidths.fitting`.
    first : DefaultWidth
        What that gave. Where the history knows as much, nothing is bought: so a statement is free
        when it is asked again.

    Raises
    ------
    TooLarge, TooSlow, InvalidTarget
        As planning does.
    """
    if not first.records:
        return first
    price = _price(prices, wanted, first.records)
    if CLOSE * cost <= price <= cost:
        return first
    if not price:
        return DefaultWidth(first.records, _price(prices, wanted, first.records / 2))
    least, _ = _range(wanted)
    if price > cost:
        records = first.records * float(price / cost) / AIMED
        return _fitted(prices, wanted, cost, records, (first.records, price))
    records = max(least, first.records * max(float(price / cost) / AIMED, NARROWED))
    return _fitted(prices, wanted, cost, records, None, (first.records, price))


def _range(wanted: Sequence[Wanted]) -> tuple[float, float]:
    """Between these numbers of records, blocks become wider than their targets."""
    records = [one.target.half_width / unit_of(one) for one in wanted]
    return min(records), max(records)


def _price(prices: Prices, wanted: Sequence[Wanted], records: float) -> Fraction:
    width = DefaultWidth(records)
    return prices(
        [replace(one, target=replace(one.target, half_width=width.of(one))) for one in wanted]
    )


def _fitted(  # noqa: PLR0913, PLR0917 - what is searched, and where
    prices: Prices,
    wanted: Sequence[Wanted],
    cost: Fraction,
    records: float,
    dear: Tried | None,
    cheap: Tried | None = None,
) -> DefaultWidth:
    """The narrowest widths found at a cost, by a bracket of what is too dear and what is not."""
    price = cost
    for _ in range(N_TRIED_MAX):
        price = _price(prices, wanted, records)
        if price > cost:
            dear = records, price
        else:
            cheap = records, price
            if price >= CLOSE * cost:
                break
        if dear is None:  # all blocks are as narrow as they may be, or nearly
            break
        if cheap is None:
            records *= 2 * float(price / cost)
        else:
            records = _between(dear, cheap, AIMED * float(cost))
    if cheap is None:
        return DefaultWidth(records, price)  # nothing is as cheap, and it is refused
    return DefaultWidth(cheap[0], _price(prices, wanted, cheap[0] / 2))


def unit_of(wanted: Wanted) -> float:
    """What one record adds to a block's rows at most."""
    return float(wanted.block.query.bound) or 1.0


def _between(dear: tuple[float, Fraction], cheap: tuple[float, Fraction], aimed: float) -> float:
    """Where a price is likely, on a line between logarithms."""
    share = 0.5
    high, low = float(dear[1]), float(cheap[1])
    if high > aimed > low > 0:
        share = math.log(high / aimed) / math.log(high / low)
    return dear[0] * math.pow(cheap[0] / dear[0], min(max(share, 0.1), 0.95))
