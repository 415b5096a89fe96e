"""Counts of units: what they cost a unit, and whether a raise of one fits what it raises.

A unit adds at most one to each number, and to no more numbers than it has rows, than there are
groups, and than the count says. So it loses at most the weight times that, wherever its rows are:
a cost beside that of rows, which the unit's rows do not multiply again. Proof: proofs/units.md,
"Distinct units".
"""

from accountant.auditor.noises import UNCLAMPED_MAX, check_noise, refined_by
from accountant.auditor.statistics import UnitCount
from accountant.auditor.wrong import Wrong


class UnitCounts:
    """The counts of units of one table.

    Parameters
    ----------
    rows_per_unit : int
        The most rows of one unit.
    """

    def __init__(self, rows_per_unit: int) -> None:
        self._rows_per_unit = rows_per_unit
        self._measured: list[tuple[UnitCount, bool]] = []  # and whether it may be clamped
        self._raised: set[int] = set()
        self._steps: list[tuple[int, int]] = [(0, 0)]  # an entry, and the cost from that entry on

    @property
    def units(self) -> int:
        """The present cost, in units of 2**-40 epsilon."""
        return self._steps[-1][1]

    def units_after(self, seq: int) -> int:
        """The cost after an entry."""
        return next(cost for since, cost in reversed(self._steps) if since <= seq)

    def charge(self, seq: int, counts: list[UnitCount]) -> None:
        """Add the counts of one charge; Wrong if they are not valid."""
        added = sum(self._reach(one) * self._weight_added(one) for one in counts)
        self._steps.append((seq, self.units + added))

    def measure(self, count: UnitCount, values: tuple[int, ...]) -> None:
        """Note the values of a charged count, in lattice steps."""
        self._measured.append((count, any(abs(value) > UNCLAMPED_MAX for value in values)))

    def forget(self) -> None:
        """Let nothing be raised from what was measured: rows have changed. All stays paid."""
        self._raised.update(range(len(self._measured)))

    def begin_anew(self) -> None:
        """Name counts by their places from the first again, as there is other data."""
        self._measured, self._raised = [], set()

    def _reach(self, count: UnitCount) -> int:
        """In how many groups a unit counts."""
        return min(count.block.n_rows, count.groups_max, self._rows_per_unit)

    def _weight_added(self, count: UnitCount) -> int:
        check_noise(count.noise)
        place = count.raised_from
        if place is None:
            return count.noise.weight_units
        if place >= len(self._measured):
            raise Wrong("a count of units raised that was never made")
        if place in self._raised:
            raise Wrong("a count of units raised twice")
        self._raised.add(place)
        earlier, may_be_clamped = self._measured[place]
        which = earlier.groups_max, earlier.only_cut
        if earlier.block is not count.block or which != (count.groups_max, count.only_cut):
            raise Wrong("a count of units raised for other groups than it is of")
        return refined_by(count.noise, earlier.noise, may_be_clamped=may_be_clamped)
