"""The public schema of one private table: its axes, its neighbours, its public cap on records."""

import math
from dataclasses import dataclass
from enum import StrEnum

from cube.axis import NAME_LENGTH_MAX, Axis
from cube.cached import cached_property

N_RECORDS_MAX = 2**40  # with COEFFICIENT_MAX keeps every exact answer inside 80 bits
N_AXES_MAX = 1000


class Neighbours(StrEnum):
    """Which two tables the guarantee makes indistinguishable."""

    ADD_REMOVE = "add_remove"
    """One row is added or removed."""


@dataclass(frozen=True, kw_only=True)
class Schema:
    """What is public about a private table.

    Parameters
    ----------
    table : str
        The table's name in SQL.
    axes : tuple of Axis
        Its columns, in the order results and catalogs show them.
    n_records_max : int
        A public upper bound on the number of records. Bounds rounding bias and clips intervals.
    neighbours : Neighbours
        The relation the guarantee is about.
    unit : str, optional
        The name of the source's column that says whom a row is about; each has one row. It is not
        an axis: its values are private.
    """

    table: str
    axes: tuple[Axis, ...]
    n_records_max: int
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    unit: str | None = None

    def __post_init__(self) -> None:
        if not self.table or len(self.table) > NAME_LENGTH_MAX or not self.table.isprintable():
            raise ValueError(f"a table name is 1 to {NAME_LENGTH_MAX} printable characters")
        if not 1 <= len(self.axes) <= N_AXES_MAX:
            raise ValueError(f"{self.table}: 1 to {N_AXES_MAX} columns are needed")
        folded = [axis.name.casefold() for axis in self.axes]
        if len(set(folded)) != len(folded):
            raise ValueError(f"{self.table}: two columns share a name (letter case does not count)")
        if not 1 <= self.n_records_max <= N_RECORDS_MAX:
            raise ValueError(f"{self.table}: n_records_max must be from 1 to {N_RECORDS_MAX}")
        if self.unit is not None:
            self._check_unit(self.unit, folded)

    def _check_unit(self, unit: str, folded: list[str]) -> None:
        """Raise ValueError unless the unit can be the name of a column without public levels."""
        if not unit or len(unit) > NAME_LENGTH_MAX or not unit.isprintable():
            raise ValueError(f"{self.table}: unit is 1 to {NAME_LENGTH_MAX} printable characters")
        if unit.casefold() in folded:
            raise ValueError(f"{self.table}: the unit {unit} is also a column with levels")

    @cached_property
    def by_name(self) -> dict[str, Axis]:
        """The axes by their names."""
        return {axis.name: axis for axis in self.axes}

    def sizes(self, scope: tuple[str, ...]) -> tuple[int, ...]:
        """The number of levels of each axis in `scope`."""
        return tuple(self.by_name[name].size for name in scope)

    def n_cells(self, scope: tuple[str, ...]) -> int:
        """The number of cells of `scope`, exactly (it may be far beyond 2**64)."""
        return math.prod(self.sizes(scope))
