"""At most so many rows of a unit at each level of one axis, beside how many it may have in all."""

from collections.abc import Mapping
from dataclasses import dataclass


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
            raise ValueError("an axis, and at least one row of a unit at each of its levels")

    @classmethod
    def declared(cls, by_axis: Mapping[str, int]) -> "RowsByLevel | None":
        """The bound as declarations have it, ``{axis: rows}``; None if there is none.

        Raises
        ------
        ValueError
            If it names several axes, or is no bound.
        """
        if len(by_axis) > 1:
            raise ValueError("rows of a unit are bounded by the levels of one axis")
        return next((cls(axis, rows) for axis, rows in by_axis.items()), None)

    @property
    def declaration(self) -> dict[str, int]:
        """The same as declarations have it."""
        return {self.axis: self.rows}

    def at_levels(self, n_levels: int, n_rows: int) -> int:
        """The most rows that a unit has at some levels together, if it has `n_rows` in all."""
        return min(n_rows, self.rows * n_levels)
