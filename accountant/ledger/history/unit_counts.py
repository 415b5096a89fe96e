"""Counts of units in a history: their prices, their values, and what a raise adds.

A unit adds at most one to each group, and to at most `UnitCount.reach` of them. So a count of units
costs a unit its weight times that reach wherever its rows are: a number that is added to the cost
of the rows, and that nothing multiplies by the unit's rows again.

Their noise is drawn, refined and raised as that of rows is (raises.py), in a list of their own:
they are no rows of the history. Nothing here does input or output. Proof: proofs/units.md,
"Distinct units".
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias

from accountant.ledger.charged import ChargedStatistic, ChargedUnitCount
from accountant.ledger.entries import Charge
from accountant.ledger.history.raises import Raises, StalePlan
from accountant.ledger.values import AppendOnly, GrowingSet
from accountant.noise import LatticeNoise
from cube.encoding import fingerprint
from cube.measurement import Measurement
from cube.statistic import PlannedUnitCount, UnitCount

Name: TypeAlias = tuple[str, int, bool]
"""The name of a count: the fingerprint of the groups, the largest number of groups in which a unit
counts, and whether only units with rows left out are counted.
"""


def name_of(count: UnitCount) -> Name:
    """Equal for counts of the same."""
    return fingerprint(count.block), count.groups_max, count.only_cut


@dataclass(frozen=True, eq=False)
class UnitCounts:
    """The counts of units of one table.

    Parameters
    ----------
    rows_per_unit : int
        The most rows of one unit.
    units : int
        The charge for all counts together, in units of 2**-40 epsilon.
    names : sequence of (str, int, bool)
        The name of each count (see `name_of`), in the order in which they became durable.
    measurements : sequence of Measurement
        The measured values of the counts, in the same order.
    superseded : GrowingSet
        Places of those from which a later one was raised.
    latest : mapping of (str, int, bool) to int
        The place of the most accurate count of the same.
    """

    rows_per_unit: int = 1
    units: int = 0
    names: AppendOnly[Name] = field(default_factory=AppendOnly)
    measurements: AppendOnly[Measurement] = field(default_factory=AppendOnly)
    superseded: GrowingSet = field(default_factory=GrowingSet)
    latest: Mapping[Name, int] = field(default_factory=lambda: MappingProxyType({}))

    def added(self, plan: Sequence[PlannedUnitCount]) -> int:
        """The units that a plan adds to the cost of a unit: a raise adds only the difference.

        Raises
        ------
        StalePlan, ValueError
            As `Raises.added`.
        """
        self._check_names((planned.count, planned.raised_from) for planned in plan)
        bought = self._raises.added([planned.rows for planned in plan])
        return sum(
            one.laplace_weight.units * planned.count.reach(self.rows_per_unit)
            for one, planned in zip(bought, plan, strict=True)
        )

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
        asked, statistics = charge.unit_counts, charge.statistics
        if not asked:
            return self, statistics
        waiting = {one.raised_from for other in pending for one in other.unit_counts} - {None}
        if not waiting.isdisjoint(one.raised_from for one in asked):
            raise StalePlan("another raise of this count of units is pending")
        plan = [PlannedUnitCount(one.count, one.noise.weight, one.raised_from) for one in asked]
        after = replace(self, units=self.units + self.added(plan))
        return after, tuple(
            self._checked(one) if isinstance(one, ChargedUnitCount) else one for one in statistics
        )

    def measured(self, found: Iterable[tuple[ChargedUnitCount, tuple[int, ...]]]) -> "UnitCounts":
        """The counts after some were measured, with their values in lattice steps."""
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

    @property
    def _raises(self) -> Raises:
        return Raises(self.measurements, self.superseded)

    def _weight_at(self, place: int, new: Sequence[tuple[Name, Measurement]]) -> int:
        n_known = len(self.measurements)
        found = self.measurements[place] if place < n_known else new[place - n_known][1]
        return found.weight.units

    def _checked(self, charged: ChargedUnitCount) -> ChargedUnitCount:
        block = self._raises.checked(charged.rows, ()).block
        return replace(charged, count=replace(charged.count, block=block))

    def _check_names(self, counts: Iterable[tuple[UnitCount, int | None]]) -> None:
        """Refuse a raise of a count in which a unit may count in fewer or more groups."""
        for count, place in counts:
            if place is None or place >= len(self.names):
                continue
            if self.names[place] != name_of(count):
                raise StalePlan("the count of units to raise has other groups")
