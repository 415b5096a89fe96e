"""Statistics of units in a history: their prices, their values, and what a raise adds.

A unit moves all numbers of a statistic together by at most its reach. So a count of units, or of
bounded rows, costs a unit its weight times that reach wherever its rows are: a number that is added
to the cost of the rows, and that nothing multiplies by the unit's rows again.

A count by one holder of a federated table costs only units with rows there, which have no rows at
other holders, or at each of them as many. So it is priced as rows are, at the holder's cells: what
the count costs a unit, divided by the rows of a unit there.

Their noise is drawn, refined and raised as that of rows is (raises.py), in a list of their own:
they are no rows of the history. Nothing here does input or output. Proof: proofs/units.md,
"Distinct units" and "Bounded rows".
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias

from accountant.ledger.charged import ChargedStatistic, ChargedUnitCount
from accountant.ledger.entries import Charge, TableOpened
from accountant.ledger.history.raises import Raises, StalePlan
from accountant.ledger.values import AppendOnly, GrowingSet
from accountant.noise import LatticeNoise
from cube.encoding import fingerprint
from cube.holders import holder_factor
from cube.measurement import Measurement, PlannedMeasurement, Weight
from cube.query import Factor, QueryBlock, counting
from cube.statistic import OfUnits, PlannedUnitCount

Name: TypeAlias = tuple[str, str, int, int]
"""The name of a count: the fingerprint of the groups, and the `Rule` by which units count."""


def name_of(count: OfUnits) -> Name:
    """Equal for counts of the same."""
    return fingerprint(count.block), *count.rule


def planned_counts(charge: Charge) -> list[PlannedUnitCount]:
    """The counts of units of a charge, as they were planned."""
    return [
        PlannedUnitCount(one.count, one.noise.weight, one.raised_from) for one in charge.unit_counts
    ]


@dataclass(frozen=True, eq=False)
class UnitCounts:
    """The counts of units of one table.

    Parameters
    ----------
    rows_per_unit : int
        The most rows of one unit.
    units : int
        The charge for all counts that are not priced as rows, in units of 2**-40 epsilon.
    holders : str
        The axis of the holders of a federated table; empty for another one.
    rows_at_holder : int
        The most rows of one unit at one of them.
    names : sequence of Name
        The name of each count (see `name_of`), in the order in which they became durable.
    measurements : sequence of Measurement
        The measured values of the counts, in the same order.
    paid_by : sequence of int
        For each of them, the number of its charge.
    superseded : GrowingSet
        Places of those from which a later one was raised.
    latest : mapping of Name to int
        The place of the most accurate count of the same.
    """

    rows_per_unit: int = 1
    units: int = 0
    holders: str = ""
    rows_at_holder: int = 1
    names: AppendOnly[Name] = field(default_factory=AppendOnly)
    measurements: AppendOnly[Measurement] = field(default_factory=AppendOnly)
    paid_by: AppendOnly[int] = field(default_factory=AppendOnly)
    superseded: GrowingSet = field(default_factory=GrowingSet)
    latest: Mapping[Name, int] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(cls, opened: TableOpened) -> "UnitCounts":
        """Those of a table in which nothing was counted yet."""
        by, rows = opened.rows_per_unit_by, opened.rows_per_unit
        at_holder = rows if by is None or by.axis != opened.holders else by.rows
        return cls(rows, holders=opened.holders, rows_at_holder=at_holder)

    def begun_anew(self) -> "UnitCounts":
        """The same with other data: all stays paid, and nothing is counted yet."""
        return UnitCounts(self.rows_per_unit, self.units, self.holders, self.rows_at_holder)

    def added(self, plan: Sequence[PlannedUnitCount]) -> int:
        """The units that a plan adds to the cost of a unit: a raise adds only the difference.

        What counts at one holder cost is not in it: see `costing`.

        Raises
        ------
        StalePlan, ValueError
            As `Raises.added`.
        """
        weights = zip(self._weights_added(plan), plan, strict=True)
        return sum(
            units * planned.count.reach(self.rows_per_unit)
            for units, planned in weights
            if self._at_holder(planned) is None
        )

    def costing(self, plan: Sequence[PlannedUnitCount]) -> list[PlannedMeasurement]:
        """Rows that cost a unit what the counts at one holder among a plan do; raises as `added`.

        A unit with all its rows at a holder pays for so many rows there.
        """
        found = []
        for units, planned in zip(self._weights_added(plan), plan, strict=True):
            factor = self._at_holder(planned)
            if factor is not None:
                cost = units * planned.count.reach(self.rows_at_holder)
                weight = Weight(-(-cost // self.rows_at_holder))
                found.append(PlannedMeasurement(QueryBlock(counting((factor,))), weight))
        return found

    def noise_for(self, planned: PlannedUnitCount) -> LatticeNoise:
        """The noise to draw; TooLarge if it raises a count whose noise cannot be refined."""
        return self._raises.laplace_noise_for(planned.rows)

    def foreseen(self, planned: PlannedUnitCount) -> Measurement:
        """What a planned count would make, with 0 for every value; raises as `noise_for`."""
        return self._raises.foreseen(planned.rows)

    def charged(
        self, charge: Charge, pending: Iterable[Charge] = ()
    ) -> "tuple[UnitCounts, tuple[ChargedStatistic, ...]]":
        """What is paid for once a charge is, and its statistics with the arrays of earlier ones.

        Raises
        ------
        ValueError
            If a count cannot be charged: what it raises is not there, or is raised by one of those
            that wait, or its noise is no refinement of its own.
        """
        statistics = charge.statistics
        plan = planned_counts(charge)
        if not plan:
            return self, statistics
        waiting = {one.raised_from for other in pending for one in other.unit_counts} - {None}
        if not waiting.isdisjoint(one.raised_from for one in plan):
            raise StalePlan("another raise of this count of units is pending")
        after = replace(self, units=self.units + self.added(plan))
        return after, tuple(
            self._checked(one) if isinstance(one, ChargedUnitCount) else one for one in statistics
        )

    def measured(
        self, seq: int, found: Iterable[tuple[ChargedUnitCount, tuple[int, ...]]]
    ) -> "UnitCounts":
        """The counts after those of a charge were measured, with their values in lattice steps."""
        new = [
            (name_of(one.count), self._raises.measured(one.rows, values)) for one, values in found
        ]
        if not new:
            return self
        latest = dict(self.latest)
        for place, (name, measurement) in enumerate(new, start=len(self.measurements)):
            held = latest.get(name)
            if held is None or self._weight_at(held, new) < measurement.weight.units:
                latest[name] = place
        return replace(
            self,
            names=self.names.followed_by(name for name, _ in new),
            measurements=self.measurements.followed_by(one for _, one in new),
            paid_by=self.paid_by.followed_by([seq] * len(new)),
            superseded=self.superseded.joined_by(
                one.supersedes for _, one in new if one.supersedes is not None
            ),
            latest=MappingProxyType(latest),
        )

    def forgotten(self) -> "UnitCounts":
        """The same once rows have changed: all stays paid, and nothing is known of it any more."""
        places = range(len(self.measurements))
        superseded = self.superseded.joined_by(places)
        return replace(self, superseded=superseded, latest=MappingProxyType({}))

    def _weights_added(self, plan: Sequence[PlannedUnitCount]) -> list[int]:
        self._check_names((planned.count, planned.raised_from) for planned in plan)
        bought = self._raises.added([planned.rows for planned in plan])
        return [one.laplace_weight.units for one in bought]

    def _at_holder(self, planned: PlannedUnitCount) -> Factor | None:
        """The factor of the one holder that counts; None if several do, or none is told apart."""
        return holder_factor(planned.count.block, self.holders) if self.holders else None

    @property
    def _raises(self) -> Raises:
        return Raises(self.measurements, self.superseded)

    def _weight_at(self, place: int, new: Sequence[tuple[Name, Measurement]]) -> int:
        n_known = len(self.measurements)
        found = self.measurements[place] if place < n_known else new[place - n_known][1]
        return found.weight.units

    def _checked(self, charged: ChargedUnitCount) -> ChargedUnitCount:
        shared = self._raises.checked(charged.rows, ()).block
        count = charged.count
        if count.numbers is not count.block:
            return charged
        return replace(charged, count=replace(count, block=shared))

    def _check_names(self, counts: Iterable[tuple[OfUnits, int | None]]) -> None:
        """Refuse a raise of a count with other bounds on what a unit adds."""
        for count, place in counts:
            if place is None or place >= len(self.names):
                continue
            if self.names[place] != name_of(count):
                raise StalePlan("the count of units to raise has other groups")
