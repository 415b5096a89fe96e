"""The public schema of one private table: its axes, its neighbours, its public caps.

There is a cap on its records, and one on the rows of a unit: at most so many in all, and beside
that perhaps at most so many at each level of one axis.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from cube.axis import NAME_LENGTH_MAX, Axis, CategoryAxis, DateAxis, IntegerAxis, TimestampAxis
from cube.runtime import cached_property


@dataclass(frozen=True, slots=True)
class RowsByLevel:
    """A bound on the rows of a unit at each level of an axis.

    Parameters
    ----------
    axis : str
    rows : int
        At most so many at one level; at least one.
    """

    axis: str
    rows: int

    def __post_init__(self) -> None:
        if not self.axis or type(self.rows) is not int or self.rows < 1:
            raise ValueError(
                "there must be an axis, and a unit must be allowed at least one row at "
                "each of its levels"
            )

    @classmethod
    def declared(cls, by_axis: Mapping[str, int]) -> "RowsByLevel | None":
        """The bound as declarations have it, ``{axis: rows}``; None if there is none.

        Raises
        ------
        ValueError
            If it names several axes, or is no bound.
        """
        if len(by_axis) > 1:
            raise ValueError("the rows of a unit must be bounded by the levels of one axis")
        return next((cls(axis, rows) for axis, rows in by_axis.items()), None)

    @property
    def declaration(self) -> dict[str, int]:
        """The same as declarations have it."""
        return {self.axis: self.rows}

    def at_levels(self, n_levels: int, n_rows: int) -> int:
        """The most rows that a unit has at some levels together, if it has `n_rows` in all."""
        return min(n_rows, self.rows * n_levels)


N_RECORDS_MAX = 2**40  # with COEFFICIENT_MAX keeps every exact answer inside 80 bits
N_AXES_MAX = 1000
PERSON = "person"  # who may have rows at several holders, where nothing else is declared
N_ROWS_PER_UNIT_MAX = 2**20


class Neighbours(StrEnum):
    """Which two tables the guarantee makes indistinguishable."""

    ADD_REMOVE = "add_remove"
    """All rows of one unit are added or removed; of one row, where there is no unit."""


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The public description of a private table.

    Parameters
    ----------
    table : str
        The table's name in SQL.
    axes : tuple of Axis
        The columns, in the order in which results and catalogs show them.
    n_records_max : int
        A public upper bound on the number of records. Bounds rounding bias and clips intervals.
    neighbours : Neighbours
        The relation the guarantee is about.
    unit : str, optional
        The name of the source's column that says whom a row is about. It is not an axis: its values
        are private.
    rows_per_unit_max : int
        The most rows of one unit that are kept; the source leaves out the others. Every epsilon is
        for a unit, so what a row costs counts this many times.
    groups_per_unit_max : int, optional
        The most groups of a statement in which one unit is counted by COUNT(DISTINCT unit); None
        for as many as it has rows.
    grows : str, optional
        The axis along which the table grows: rows with later levels come later.
    rows_per_unit_max_by : RowsByLevel, optional
        The most rows of one unit that are kept at each level of an axis, beside those in all.
    holders : str, optional
        The axis of the holders of a federated table, which measure their rows themselves.
    people_overlap : bool
        Whether a person may have rows in several of the holders: what they may lose then adds up.
    """

    table: str
    axes: tuple[Axis, ...]
    n_records_max: int
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    unit: str | None = None
    rows_per_unit_max: int = 1
    groups_per_unit_max: int | None = None
    grows: str | None = None
    rows_per_unit_max_by: RowsByLevel | None = None
    holders: str | None = None
    people_overlap: bool = False

    def __post_init__(self) -> None:
        if not self.table or len(self.table) > NAME_LENGTH_MAX or not self.table.isprintable():
            raise ValueError(f"a table name must have 1 to {NAME_LENGTH_MAX} printable characters")
        if not 1 <= len(self.axes) <= N_AXES_MAX:
            raise ValueError(f"{self.table}: 1 to {N_AXES_MAX} columns are needed")
        folded = [axis.name.casefold() for axis in self.axes]
        if len(set(folded)) != len(folded):
            raise ValueError(f"{self.table}: two columns share a name (letter case does not count)")
        if not 1 <= self.n_records_max <= N_RECORDS_MAX:
            raise ValueError(f"{self.table}: n_records_max must be from 1 to {N_RECORDS_MAX}")
        if not 1 <= self.rows_per_unit_max <= N_ROWS_PER_UNIT_MAX:
            raise ValueError(
                f"{self.table}: rows_per_unit_max must be from 1 to {N_ROWS_PER_UNIT_MAX}"
            )
        if self.unit is not None:
            self._check_unit(self.unit, folded)
        elif self.rows_per_unit_max > 1:
            raise ValueError(f"{self.table}: rows_per_unit_max needs a unit")
        if self.rows_per_unit_max_by is not None:
            self._check_by_level(self.rows_per_unit_max_by)
        self._check_groups(self.groups_per_unit_max)
        self._check_grows(self.grows)
        self._check_holders(self.holders)

    def _check_holders(self, holders: str | None) -> None:
        """Raise ValueError unless the axis of the holders is one of the table's."""
        if holders is not None and not isinstance(self.by_name.get(holders), CategoryAxis):
            raise ValueError(f"{self.table}: the axis {holders} of its holders does not exist")
        if self.people_overlap and holders is None:
            raise ValueError(f"{self.table}: people_overlap needs holders")

    def _check_groups(self, n_groups: int | None) -> None:
        """Raise ValueError unless a unit can be counted in at most so many groups."""
        if n_groups is not None and not 1 <= n_groups <= self.rows_per_unit_max:
            raise ValueError(
                f"{self.table}: groups_per_unit_max must be from 1 to rows_per_unit_max"
            )

    def _check_by_level(self, bound: RowsByLevel) -> None:
        """Raise ValueError where one of the two bounds says nothing beside the other."""
        name = f"{self.table}: rows_per_unit_max_by"
        axis = self.by_name.get(bound.axis)
        if axis is None:
            raise ValueError(f"{name} names {bound.axis}, which is not a column with levels")
        if bound.rows >= self.rows_per_unit_max:
            raise ValueError(f"{name} must be below rows_per_unit_max to bound anything")
        most = bound.rows * axis.size
        if most < self.rows_per_unit_max:
            raise ValueError(
                f"{name} allows a unit {most} rows in total, over {axis.size} levels "
                f"of {bound.axis}: set rows_per_unit_max = {most}"
            )

    def _check_grows(self, grows: str | None) -> None:
        """Raise ValueError unless the table can grow along an axis: its levels are ordered."""
        if grows is None:
            return
        if not isinstance(axis := self.by_name.get(grows), DateAxis | IntegerAxis | TimestampAxis):
            raise ValueError(  # noqa: TRY004 - the declaration is wrong, not the call
                f"{self.table}: a table must grow along a date, timestamp or integer column"
            )
        if axis.null or axis.other is not None:
            raise ValueError(f"{self.table}: the levels of {grows} have no order")

    def _check_unit(self, unit: str, folded: list[str]) -> None:
        """Raise ValueError unless the unit can be the name of a column without public levels."""
        if not unit or len(unit) > NAME_LENGTH_MAX or not unit.isprintable():
            raise ValueError(
                f"{self.table}: unit must have 1 to {NAME_LENGTH_MAX} printable characters"
            )
        if unit.casefold() in folded:
            raise ValueError(f"{self.table}: the unit {unit} must not also be a column with levels")

    @cached_property
    def by_name(self) -> dict[str, Axis]:
        """The axes by their names."""
        return {axis.name: axis for axis in self.axes}

    @property
    def of_one_holder(self) -> "Schema":
        """The schema of each holder's table: the same without the axis of the holders."""
        kept = tuple(axis for axis in self.axes if axis.name != self.holders)
        if not self.people_overlap:
            return replace(self, axes=kept, holders=None)
        return replace(
            self,
            axes=kept,
            holders=None,
            people_overlap=False,
            unit=None if self._rows_at_one_holder == 1 else self.unit,
            rows_per_unit_max=self._rows_at_one_holder,
            rows_per_unit_max_by=None,
        )

    @property
    def _rows_at_one_holder(self) -> int:
        """The most rows that a person has at one holder."""
        by = self.rows_per_unit_max_by
        return self.rows_per_unit_max if by is None or by.axis != self.holders else by.rows

    def visible(self, *, holders_public: bool) -> "Schema":
        """The schema that SQL sees: who the holders are, or no more than their table."""
        if self.holders is None or holders_public:
            return self
        own = self.of_one_holder
        return replace(own, unit=self.unit, rows_per_unit_max=self.rows_per_unit_max)

    def with_overlap(self, unit: str | None = None) -> "Schema":
        """The same table, if a person may be at each of its holders, with as many rows at each.

        Then the loss is a sum over holders: that of a unit with so many rows at each level of
        their axis.

        Raises
        ------
        ValueError
            If the rows of a unit are bounded by the levels of another axis already.
        """
        if self.rows_per_unit_max_by is not None:
            raise ValueError(
                f"{self.table}: people_overlap bounds the rows of a person at each holder, and "
                "rows_per_unit_max_by those at each level of another column; only one can be"
            )
        n_holders = 1 if self.holders is None else self.by_name[self.holders].size
        if n_holders == 1 or self.holders is None:
            return replace(self, people_overlap=self.holders is not None)
        return replace(
            self,
            people_overlap=True,
            unit=unit or self.unit or PERSON,
            rows_per_unit_max=n_holders * self.rows_per_unit_max,
            rows_per_unit_max_by=RowsByLevel(self.holders, self.rows_per_unit_max),
        )

    def per_row(self, epsilon: Fraction) -> Fraction:
        """The most that a row may cost if a unit may cost `epsilon`."""
        return epsilon / self.rows_per_unit_max

    @property
    def groups_per_unit(self) -> int:
        """The most groups of a statement in which one unit is counted."""
        return self.groups_per_unit_max or self.rows_per_unit_max

    def sizes(self, scope: tuple[str, ...]) -> tuple[int, ...]:
        """The number of levels of each axis in `scope`."""
        return tuple(self.by_name[name].size for name in scope)

    def n_cells(self, scope: tuple[str, ...]) -> int:
        """The number of cells of `scope`, exactly (it may be far beyond 2**64)."""
        return math.prod(self.sizes(scope))
