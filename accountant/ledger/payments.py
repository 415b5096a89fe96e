"""What follows from one charge: what it added, the limits it counts towards, its statistics.

Values that the history (table_history.py) consists of, and that the gate returns. Proof:
proofs/gate.md, "Limits" and "Statistics".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from accountant.ledger.charged import ChargedGaussian, ChargedStatistic, ChargedUnitCount
from accountant.ledger.entries import Charge
from accountant.ledger.limits import Limit, Subject
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
        """What it added to the table's cost, in units of 2**-40 epsilon."""
        return self.charge.units_after - self.charge.units_before


@dataclass(frozen=True, slots=True)
class ReleasedStatistics:
    """The statistics of a charge, and the released numbers of each."""

    charge: int
    statistics: tuple[ChargedStatistic, ...]
    released: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.released) != sum(charged.n_released for charged in self.statistics):
            raise ValueError("a measurement of other statistics than were charged")
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
        raise ValueError("a budget below zero")
    return value


def units_of(epsilon: Fraction) -> int:
    """An epsilon that may be spent, in whole units of 2**-40, rounded down."""
    return int(epsilon * UNITS_PER_EPSILON)
