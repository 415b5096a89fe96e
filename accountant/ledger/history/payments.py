"""Payments: what each charge added to the cost, its statistics, and who spent how much when.

A payment counts towards the limits of its payer. What is spent stays spent, in all and on the
account of each analyst and group; here it can be asked what of it was spent since a moment, because
limits (limits.py) and budgets that renew count what was spent in a window of time.

The charges for which other ledgers asked are known by their requests, and what was told of each: a
holder of a federated table measures for the ledger of a coordinator. Each request has a name, the
`reference`, under the name of the analyst who pays. Asked again, it is not charged
again, and the same values are told.

Values only: a history (table_history.py) consists of them, and the gate returns some. Proofs:
proofs/gate.md, "Limits", "Statistics" and "Budgets that renew"; proofs/federation.md.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from accountant.ledger.charged import ChargedGaussian, ChargedStatistic, ChargedUnitCount
from accountant.ledger.entries import Charge, Measured
from accountant.ledger.limits import Limit, Subject
from accountant.ledger.values import AppendOnly, GrowingMap
from cube.measurement import UNITS_PER_EPSILON
from cube.statistic import GaussianCounts, GaussianNoisyCounts


@dataclass(frozen=True, slots=True)
class Payment:
    """A charge, its number and its time."""

    seq: int
    at: str
    charge: Charge

    @property
    def units(self) -> int:
        """The units of 2**-40 epsilon that it added to the table's cost."""
        return self.charge.units_after - self.charge.units_before


@dataclass(frozen=True, slots=True)
class ReleasedStatistics:
    """The statistics of a charge, and the released numbers of each."""

    charge: int
    statistics: tuple[ChargedStatistic, ...]
    released: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.released) != sum(charged.n_released for charged in self.statistics):
            raise ValueError("the measurement does not match the charged statistics")
        for charged, numbers in self._parts():
            for number in numbers:
                charged.check_released(number)

    @property
    def values(self) -> tuple[float, ...]:
        """Noisy distances and counts in records; the places of chosen candidates."""
        return tuple(
            charged.value_of(number) for charged, numbers in self._parts() for number in numbers
        )

    @property
    def counts(self) -> tuple[GaussianNoisyCounts, ...]:
        """The rows that were released with Gaussian noise."""
        found = []
        for charged, numbers in self._parts():
            if isinstance(charged, ChargedGaussian) and isinstance(
                charged.statistic, GaussianCounts
            ):
                values = np.array([charged.value_of(number) for number in numbers])
                deviation = charged.noise.noise_scale
                found.append(GaussianNoisyCounts(charged.statistic.block, values, deviation))
        return tuple(found)

    @property
    def unit_counts(self) -> tuple[tuple[ChargedUnitCount, tuple[int, ...]], ...]:
        """Each count of units, with its released numbers in lattice steps."""
        return tuple(
            (charged, numbers)
            for charged, numbers in self._parts()
            if isinstance(charged, ChargedUnitCount)
        )

    def _parts(self) -> Iterator[tuple[ChargedStatistic, tuple[int, ...]]]:
        """Each statistic with its released numbers."""
        place = 0
        for charged in self.statistics:
            yield charged, self.released[place : place + charged.n_released]
            place += charged.n_released


@dataclass(frozen=True, slots=True)
class BindingLimit:
    """A limit that applies to a payer, and what counts towards it now.

    Parameters
    ----------
    limit : Limit
    account : Subject
        Whose spending counts: for a limit of each analyst, that analyst's.
    units_spent : int
        In the window, in units of 2**-40 epsilon.
    """

    limit: Limit
    account: Subject
    units_spent: int

    @property
    def units_left(self) -> int | None:
        """The most that a charge may add now, rounded down; None for no limit."""
        lefts = []
        if self.limit.epsilon is not None:
            lefts.append(max(0, units_of(self.limit.epsilon) - self.units_spent))
        if self.limit.per_query is not None:
            lefts.append(units_of(self.limit.per_query))
        return min(lefts, default=None)


def checked_budget(value: Fraction) -> Fraction:
    """A budget; ValueError if it is below zero."""
    if value < 0:
        raise ValueError("a budget must not be negative")
    return value


def units_of(epsilon: Fraction) -> int:
    """An epsilon that may be spent, in whole units of 2**-40, rounded down."""
    return int(epsilon * UNITS_PER_EPSILON)


Sums = AppendOnly[tuple[str, int]]
"""Times, in order, at which something was spent, and what had been spent after each."""


@dataclass(frozen=True, eq=False)
class Spending:
    """The spending of a table, in units of 2**-40 epsilon.

    Parameters
    ----------
    in_all : sequence of (str, int)
        The times and units of the table's spending, by all accounts.
    by_account : mapping of Subject to sequence of (str, int)
    """

    in_all: Sums = field(default_factory=AppendOnly)
    by_account: Mapping[Subject, Sums] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def units(self) -> int:
        """The total spending."""
        return self.in_all[-1][1] if self.in_all else 0

    def since(self, moment: str) -> int:
        """The spending since a moment."""
        return _since(self.in_all, moment)

    def by(self, account: Subject, since: str) -> int:
        """The same on one account."""
        return _since(self.by_account.get(account, AppendOnly()), since)

    def after(self, payment: Payment) -> "Spending":
        """The spending after a payment."""
        accounts = dict(self.by_account)
        for account in payment.charge.payer.subjects:
            before = accounts.get(account, AppendOnly())
            accounts[account] = _more(before, payment.at, payment.units)
        raised = self.raised(payment.at, payment.units)
        return replace(raised, by_account=MappingProxyType(accounts))

    def raised(self, at: str, units: int) -> "Spending":
        """The spending with `units` added that belong to no account."""
        return replace(self, in_all=_more(self.in_all, at, units))

    def corrected(self, at: str) -> "Spending":
        """The same once the clock was corrected to `at`: nothing counts at a later time."""
        accounts = {who: none_later(sums, at) for who, sums in self.by_account.items()}
        return Spending(none_later(self.in_all, at), MappingProxyType(accounts))


def none_later(sums: Sums, at: str) -> Sums:
    """The same, with all that was spent at a later time counted at time `at`."""
    n_earlier = bisect_right(sums, at, key=lambda one: one[0])
    if n_earlier == len(sums):
        return sums
    later = ((at, units) for _, units in sums[n_earlier:])
    return AppendOnly([*sums[:n_earlier], *later])


def _since(sums: Sums, moment: str) -> int:
    if not sums or not moment:  # every charge is since the empty time
        return sums[-1][1] if sums else 0
    first = bisect_left(sums, moment, key=lambda one: one[0])
    return sums[-1][1] - (sums[first - 1][1] if first else 0)


def _more(sums: Sums, at: str, units: int) -> Sums:
    before = sums[-1][1] if sums else 0
    return sums.followed_by([(at, before + units)])


Request: TypeAlias = tuple[str, str]  # the analyst who pays, and the reference


@dataclass(frozen=True, slots=True, eq=False)
class ForOthers:
    """Requests of other ledgers.

    Parameters
    ----------
    charges : map of (str, str) to int
        The number of the charge for each request.
    answers : map of int to Measured
        What was told, by the number of the charge.
    """

    charges: GrowingMap[Request, int] = field(default_factory=GrowingMap)
    answers: GrowingMap[int, Measured] = field(default_factory=GrowingMap)

    def charged(self, seq: int, charge: Charge) -> "ForOthers":
        """With a charge, if another ledger asked for it; ValueError if it did so before."""
        if not charge.reference:
            return self
        request = (charge.payer.analyst, charge.reference)
        if self.charges.get(request) is not None:
            raise ValueError("the request of another ledger is charged twice")
        return replace(self, charges=self.charges.joined_by(request, seq))

    def told(self, charge: Charge, body: Measured) -> "ForOthers":
        """With a measurement, if another ledger asked for it."""
        if not charge.reference:
            return self
        return replace(self, answers=self.answers.joined_by(body.charge, body))
