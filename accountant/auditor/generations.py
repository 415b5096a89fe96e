"""Checks the generations of a table: each replaces its data, and earlier spending still counts.

A unit's rows may be others in each generation, so its loss is at most the sum, over generations, of
the largest loss of a unit: the rows of each generation are added up, and then the sums are added.
Written apart from the server's own (ledger/history/changed_rows.py).
Proof: proofs/generations.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from accountant.auditor.costs import ColumnCost, Finding
from accountant.auditor.fields import Json, Wrong, fields_of, text, whole


@dataclass(frozen=True, slots=True)
class Begun:
    """The data of a table is other data from now on; what it had spent until then."""

    data_fingerprint: str
    rows_fingerprint: str
    units_before: int


def begun(value: Json) -> Begun:
    """The content of an entry; Wrong if it is not a valid one."""
    fields = fields_of(value, ("data_fingerprint", "rows_fingerprint", "units_before", "by"))
    text(fields, "by")
    data, rows = text(fields, "data_fingerprint"), text(fields, "rows_fingerprint")
    if not (data and rows):
        raise Wrong("the generation has no fingerprint of its data")
    return Begun(data, rows, whole(fields, "units_before"))


class Generations:
    """The generations of one table.

    Parameters
    ----------
    opened_by : int
        The number of the entry that opened it.
    data_fingerprint : str
    rows_fingerprint : str
        Empty in an older ledger, until it is recorded.
    """

    def __init__(self, opened_by: int, data_fingerprint: str, rows_fingerprint: str) -> None:
        self.data = [data_fingerprint]
        self.units = 0  # what was charged for rows of all but the present one
        self._rows = rows_fingerprint
        self._begun_by = [opened_by]

    @property
    def present(self) -> int:
        """The place of the present one."""
        return len(self.data) - 1

    def pin(self, rows_fingerprint: str) -> None:
        """Note the rows of the first, which its opening did not record."""
        self._rows = rows_fingerprint

    def begin(self, seq: int, body: Begun, units: int) -> None:
        """Begin another, after so much was charged for the rows of this one."""
        if self.data[-1] == body.data_fingerprint and self._rows in ("", body.rows_fingerprint):
            raise Wrong("the generation has the same data as the one before")
        self.data.append(body.data_fingerprint)
        self._rows = body.rows_fingerprint
        self._begun_by.append(seq)
        self.units += units

    def after(self, n_entries: int) -> int:
        """How many there were after the first entries."""
        return sum(seq <= n_entries for seq in self._begun_by)


def all_columns(each: Sequence[tuple[Finding, Sequence[ColumnCost]]]) -> tuple[ColumnCost, ...]:
    """The cost along every column, over all generations.

    Parameters
    ----------
    each : sequence of (Finding, sequence of ColumnCost)
        Of each generation: the cost of its rows, and that along each column that some are about.
        Along any other column it is the same at every level.
    """
    sizes = {one.column: one.n_levels for _, columns in each for one in columns}
    return tuple(
        _added([_along(name, n_levels, *one) for one in each])
        for name, n_levels in sorted(sizes.items())
    )


def _along(name: str, n_levels: int, finding: Finding, columns: Sequence[ColumnCost]) -> ColumnCost:
    for one in columns:
        if one.column == name:
            return one
    at_least = finding.units if finding.exact else 0
    return ColumnCost(name, n_levels, (0,), (finding.units,), (at_least,))


def _added(costs: Sequence[ColumnCost]) -> ColumnCost:
    """The sum of costs along one column."""
    starts = sorted({start for one in costs for start in one.starts})
    sums = [
        tuple(map(sum, zip(*(_at(one, start) for one in costs), strict=True))) for start in starts
    ]
    return replace(
        costs[0],
        starts=tuple(starts),
        at_most=tuple(most for most, _ in sums),
        at_least=tuple(least for _, least in sums),
    )


def _at(cost: ColumnCost, level: int) -> tuple[int, int]:
    """The most and the least at a level."""
    place = sum(start <= level for start in cost.starts) - 1
    return cost.at_most[place], cost.at_least[place]
