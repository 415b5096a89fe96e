"""Axes: the public columns of a private table, each with a declared, finite list of levels.

What a level means to SQL is a value of the column's type. Two kinds of level stand outside the
regular ones, by declaration and never because of what the data holds: OTHER, a declared value that
stands for everything outside the domain, and NULL. A row with a value that has no level at all is
left out of the protected table altogether, so that every total agrees with the sum of its parts.

Nothing here knows how a source stores its columns.
"""

import datetime as dt
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeAlias

LevelValue: TypeAlias = str | int | float | bool | dt.date | None

N_LEVELS_MAX = 2**20  # an axis is enumerated; a million levels is 8 MB of coefficients
INTEGER_MAX = 2**40  # a level may be a coefficient, and those are bounded (query.py)
NAME_LENGTH_MAX = 63  # PostgreSQL's limit on identifiers, which clients rely on


@dataclass(frozen=True, kw_only=True)
class Axis(ABC):
    """A public column with declared levels.

    Parameters
    ----------
    name : str
        The column's name in SQL.
    null : bool
        Whether NULL is a level. If not, rows with NULL go to OTHER, or are left out.
    other : level value, optional
        The value that stands, in SQL and in results, for everything outside the domain.
    """

    name: str
    null: bool = False
    other: LevelValue = None

    sql_type: ClassVar[str]

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > NAME_LENGTH_MAX or not self.name.isprintable():
            raise ValueError(f"a column name is 1 to {NAME_LENGTH_MAX} printable characters")
        self._check()
        if not 1 <= self.size <= N_LEVELS_MAX:
            raise ValueError(f"{self.name} has {self.size} levels; 1 to {N_LEVELS_MAX} are allowed")
        if self.other is not None and self.other in self.regular:
            raise ValueError(f"{self.name}: other = {self.other!r} is already a level")

    @property
    @abstractmethod
    def regular(self) -> tuple[LevelValue, ...]:
        """The levels that are neither OTHER nor NULL, in order."""

    @abstractmethod
    def _check(self) -> None:
        """Raise ValueError unless the declaration makes sense."""

    @cached_property
    def levels(self) -> tuple[LevelValue, ...]:
        """Every level as the value SQL sees: regular ones, then OTHER, then NULL (as None)."""
        other = () if self.other is None else (self.other,)
        null = (None,) if self.null else ()
        return (*self.regular, *other, *null)

    @property
    def size(self) -> int:
        """The number of levels."""
        return len(self.levels)

    @property
    def other_position(self) -> int | None:
        """The position of OTHER among the levels."""
        return None if self.other is None else len(self.regular)

    @property
    def null_position(self) -> int | None:
        """The position of NULL among the levels."""
        return self.size - 1 if self.null else None


@dataclass(frozen=True, kw_only=True)
class CategoryAxis(Axis):
    """A text column with a declared list of values."""

    values: tuple[str, ...]
    sql_type: ClassVar[str] = "VARCHAR"

    def _check(self) -> None:
        if not all(isinstance(value, str) for value in self.values):
            raise ValueError(f"{self.name}: category levels are strings")
        if len(set(self.values)) != len(self.values):
            raise ValueError(f"{self.name}: a level is listed twice")
        if self.other is not None and not isinstance(self.other, str):
            raise ValueError(f"{self.name}: other must be a string")

    @property
    def regular(self) -> tuple[str, ...]:
        """The declared values."""
        return self.values


@dataclass(frozen=True, kw_only=True)
class IntegerAxis(Axis):
    """A whole-number column with levels ``low, low + 1, ..., high``."""

    low: int
    high: int
    sql_type: ClassVar[str] = "BIGINT"

    def _check(self) -> None:
        if self.low > self.high:
            raise ValueError(f"{self.name}: low {self.low} is above high {self.high}")
        if self.high - self.low >= N_LEVELS_MAX:
            raise ValueError(f"{self.name}: a range of more than {N_LEVELS_MAX} levels")
        if max(abs(self.low), abs(self.high)) > INTEGER_MAX:
            raise ValueError(f"{self.name}: levels beyond 2**40 in size")
        if self.other is not None and type(self.other) is not int:
            raise ValueError(f"{self.name}: other must be a whole number")

    @cached_property
    def regular(self) -> tuple[int, ...]:
        """Every whole number from low to high."""
        return tuple(range(self.low, self.high + 1))


@dataclass(frozen=True, kw_only=True)
class NumericAxis(Axis):
    """A numeric column cut into bins ``[e0, e1), [e1, e2), ..., [en-1, en]``.

    To SQL, a level is its bin's lower edge when it is a group key. Inside a predicate the column
    may only be compared with constants, and the comparison must not cut a bin (the planner checks).
    """

    edges: tuple[float, ...]
    sql_type: ClassVar[str] = "DOUBLE"

    def _check(self) -> None:
        if len(self.edges) < 2:  # noqa: PLR2004 - a bin has two ends
            raise ValueError(f"{self.name}: at least two edges are needed")
        if not all(math.isfinite(edge) for edge in self.edges):
            raise ValueError(f"{self.name}: edges must be finite")
        if any(a >= b for a, b in zip(self.edges, self.edges[1:], strict=False)):
            raise ValueError(f"{self.name}: edges must increase")
        if self.other is not None:
            if not isinstance(self.other, int | float) or not math.isfinite(self.other):
                raise ValueError(f"{self.name}: other must be a number")
            if self.edges[0] <= self.other <= self.edges[-1]:
                raise ValueError(f"{self.name}: other = {self.other} lies inside the edges")

    @property
    def regular(self) -> tuple[float, ...]:
        """The lower edge of every bin."""
        return tuple(float(edge) for edge in self.edges[:-1])


@dataclass(frozen=True, kw_only=True)
class BooleanAxis(Axis):
    """A column of truth values."""

    sql_type: ClassVar[str] = "BOOLEAN"

    def _check(self) -> None:
        if self.other is not None:
            raise ValueError(f"{self.name}: a boolean column has no OTHER level")

    @property
    def regular(self) -> tuple[bool, ...]:
        """False, then true."""
        return (False, True)


@dataclass(frozen=True, kw_only=True)
class DateAxis(Axis):
    """A column of days from ``low`` to ``high``, both included."""

    low: dt.date
    high: dt.date
    sql_type: ClassVar[str] = "DATE"

    def _check(self) -> None:
        for day in (self.low, self.high, *([] if self.other is None else [self.other])):
            if type(day) is not dt.date:
                raise ValueError(f"{self.name}: {day!r} is not a date without time")
        if self.low > self.high:
            raise ValueError(f"{self.name}: low {self.low} is after high {self.high}")

    @cached_property
    def regular(self) -> tuple[dt.date, ...]:
        """Every day from low to high."""
        n_days = (self.high - self.low).days + 1
        return tuple(self.low + dt.timedelta(days=day) for day in range(n_days))
