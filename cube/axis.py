"""Axes: the public columns of a private table, each with a declared, finite list of levels.

In SQL, a level is a value of the column's type. Besides the regular levels there may be two special
ones, which only the declaration creates, never the data: OTHER, a declared value that stands
for everything outside the domain, and NULL. A row with a value that has no level is left out of the
protected table altogether, so that every total agrees with the sum of its parts.

Timestamp columns hold moments on one place's clock, cut down to whole minutes, hours or days. A
level is the beginning of a step, and from then on that is what the column holds: what is compared
and grouped by, and what is protected. Levels are times on the wall of one place, without an offset;
where a source keeps moments with a zone, `time_zone` says whose clock they are read on. A year of
minutes is half a million levels, so they are made by arithmetic and listed only if asked for.

Nothing here knows how a source stores its columns or its moments, or how a clock of one zone is
read on that of another.
"""

import datetime as dt
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, TypeAlias

import numpy as np

from cube.runtime import cached_property

LevelValue: TypeAlias = str | int | float | bool | dt.date | None

N_LEVELS_MAX = 2**20  # an axis is enumerated; a million levels is 8 MB of coefficients
INTEGER_MAX = 2**40  # a level may be a coefficient, and those are bounded (query.py)
STEP_MIN = Fraction(1, 2**50)  # of the largest level: neighbouring levels are distinct doubles
# Below this, a double times the unit is off by far less than half a level.
ROUNDED_BY_DOUBLES_MAX = 2**48
DIGITS_MAX = 15  # of a decimal number that the nearest double tells from all others
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

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > NAME_LENGTH_MAX or not self.name.isprintable():
            raise ValueError(f"a column name must have 1 to {NAME_LENGTH_MAX} printable characters")
        self._check()
        if not 1 <= self.size <= N_LEVELS_MAX:
            raise ValueError(f"{self.name} has {self.size} levels; 1 to {N_LEVELS_MAX} are allowed")
        if self.other is not None and self.other in self.regular:
            raise ValueError(f"{self.name}: other = {self.other!r} is already a level")

    @property
    @abstractmethod
    def sql_type(self) -> str:
        """The column's type in SQL; most kinds of axis have one for all their columns."""

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
    def n_regular(self) -> int:
        """The number of levels that are neither OTHER nor NULL."""
        return len(self.regular)

    @cached_property
    def size(self) -> int:
        """The number of levels."""
        return self.n_regular + (self.other is not None) + self.null

    @property
    def other_position(self) -> int | None:
        """The position of OTHER among the levels."""
        return None if self.other is None else self.n_regular

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
            many = (
                f"the range has more than {N_LEVELS_MAX} levels; declare a numeric column, "
                "which has bins"
            )
            raise ValueError(f"{self.name}: {many}")
        if max(abs(self.low), abs(self.high)) > INTEGER_MAX:
            raise ValueError(f"{self.name}: levels must not exceed 2**40 in size")
        if self.other is not None and type(self.other) is not int:
            raise ValueError(f"{self.name}: other must be a whole number")

    @property
    def n_regular(self) -> int:
        """The number of whole numbers from low to high."""
        return self.high - self.low + 1

    @cached_property
    def regular(self) -> tuple[int, ...]:
        """Every whole number from low to high."""
        return tuple(range(self.low, self.high + 1))


@dataclass(frozen=True, kw_only=True)
class NumericAxis(Axis):
    """A numeric column cut into bins ``[e0, e1), [e1, e2), ..., [en-1, en]``.

    As a group key in SQL, a level is its bin's lower edge. In a predicate the column may only be
    compared with constants, and the comparison must not cut a bin (the planner checks this).
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
            raise ValueError(f"{self.name}: a boolean column cannot have an OTHER level")

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
                raise ValueError(f"{self.name}: {day!r} is not a date (without a time)")
        if self.low > self.high:
            raise ValueError(f"{self.name}: low {self.low} is after high {self.high}")

    @property
    def n_regular(self) -> int:
        """The number of days."""
        return (self.high - self.low).days + 1

    @cached_property
    def regular(self) -> tuple[dt.date, ...]:
        """Every day from low to high."""
        n_days = (self.high - self.low).days + 1
        return tuple(self.low + dt.timedelta(days=day) for day in range(n_days))


@dataclass(frozen=True, slots=True)
class Rounding:
    """Where values are rounded to the next level of a measure, in whole numbers.

    The double nearest to ``(first + level * step) / unit`` is the least value rounded to a level.
    """

    first: int
    step: int
    unit: int


@dataclass(frozen=True, kw_only=True)
class MeasureAxis(Axis):
    """A numeric column that is summed and averaged, with public bounds it is clamped to.

    Its levels are ``low, low + step, ..., high``. A value is clamped to the bounds and rounded to
    the nearest level, upwards if two are equally near; from then on that level is what the column
    holds, what is compared and grouped by, and what is protected.

    It is an axis so that privacy loss is accounted in one way only: a sum is a linear query over
    the levels, its coefficients are the levels themselves, and its cost follows from them as for
    any row.

    Parameters
    ----------
    low, high : Fraction or int
        The public bounds, as exact numbers.
    step : Fraction or int
        The distance between levels, exactly; it divides ``high - low``.
    """

    low: Fraction | int
    high: Fraction | int
    step: Fraction | int

    def __post_init__(self) -> None:
        for field in ("low", "high", "step"):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, Fraction | int):
                raise TypeError(f"{self.name}: {field} must be exact: a whole number or a Fraction")
            # One form for one declaration: 0 and Fraction(0) make equal axes with the same repr.
            object.__setattr__(self, field, Fraction(value))
        super().__post_init__()

    def _check(self) -> None:
        low, high, step = self._exact
        if self.other is not None:
            raise ValueError(
                f"{self.name}: a measure cannot have an OTHER level, because its values are clamped"
            )
        if low >= high:
            raise ValueError(f"{self.name}: low {low} is not below high {high}")
        if step <= 0:
            raise ValueError(f"{self.name}: step {step} is not positive")
        if ((high - low) / step).denominator != 1:
            raise ValueError(f"{self.name}: step {step} does not divide high - low")
        if (high - low) / step >= N_LEVELS_MAX:
            many = f"the range has more than {N_LEVELS_MAX} levels; a wider step gives fewer"
            raise ValueError(f"{self.name}: {many}")
        largest = max(abs(low), abs(high))
        if largest > INTEGER_MAX:
            raise ValueError(f"{self.name}: levels must not exceed 2**40 in size")
        if step < largest * STEP_MIN:
            raise ValueError(f"{self.name}: step {step} is too fine for levels of this size")

    @property
    def _exact(self) -> tuple[Fraction, Fraction, Fraction]:
        """Low, high and step with their exact type, to which they are converted at creation."""
        return Fraction(self.low), Fraction(self.high), Fraction(self.step)

    @property
    def is_whole(self) -> bool:
        """Whether every level is a whole number."""
        low, _high, step = self._exact
        return low.denominator == step.denominator == 1

    @property
    def sql_type(self) -> str:
        """A whole-number type if every level is whole."""
        return "BIGINT" if self.is_whole else "DOUBLE"

    @property
    def middle(self) -> Fraction:
        """The middle of the bounds: no level is further from it than half of high - low."""
        low, high, _step = self._exact
        return (low + high) / 2

    @property
    def n_regular(self) -> int:
        """The number of levels from low to high."""
        return len(self.multiples)

    @property
    def regular(self) -> tuple[int, ...] | tuple[float, ...]:
        """Every level from low to high; fractional levels as the nearest doubles."""
        numerators, unit = self._multiples(Fraction(0))
        return tuple(numerators) if unit == 1 else tuple(each / unit for each in numerators)

    @property
    def multiples(self) -> range:
        """Every level from low to high, exactly, as a whole multiple of `unit`."""
        return self._multiples(Fraction(0))[0]

    @property
    def unit(self) -> Fraction:
        """The unit of `multiples`: one divided by a whole number."""
        return Fraction(1, self._multiples(Fraction(0))[1])

    @property
    def decimal_places(self) -> int | None:
        """The digits after the point that write every level exactly; None if none do.

        None too if a level has more digits in all than a double tells apart.
        """
        places = next((n for n in range(DIGITS_MAX) if (10**n * self.unit).denominator == 1), None)
        if places is None:
            return None
        low, high, _step = self._exact
        largest = max(abs(low), abs(high)) * 10**places
        return places if largest < 10**DIGITS_MAX else None

    @property
    def rounding_points(self) -> tuple[float, ...]:
        """The nearest double to the least value that is rounded to each level but the lowest.

        Levels are half a step above these points, and a value at one of them is rounded up.
        """
        _low, _high, step = self._exact
        numerators, unit = self._multiples(step / 2)
        return tuple(each / unit for each in numerators[1:])

    @property
    def rounding(self) -> Rounding | None:
        """The rounding points as whole numbers; None if doubles do not hold them with room left."""
        _low, _high, step = self._exact
        numerators, unit = self._multiples(step / 2)
        largest = max(abs(numerators[0]), abs(numerators[-1]) + numerators.step, unit)
        if largest >= ROUNDED_BY_DOUBLES_MAX:
            return None
        return Rounding(numerators[0], numerators.step, unit)

    def _multiples(self, below: Fraction) -> tuple[range, int]:
        """The levels less `below` as whole multiples of 1 / unit; dividing by unit rounds once."""
        low, high, step = self._exact
        first, last = low - below, high - below
        unit = math.lcm(first.denominator, step.denominator)
        return range(int(first * unit), int(last * unit) + 1, int(step * unit)), unit


STEPS: Final[Mapping[str, dt.timedelta]] = {
    "minute": dt.timedelta(minutes=1),
    "hour": dt.timedelta(hours=1),
    "day": dt.timedelta(days=1),
}


@dataclass(frozen=True, kw_only=True)
class TimestampAxis(Axis):
    """A column of moments from ``low`` to the end of the step that begins at ``high``.

    Parameters
    ----------
    low, high : datetime.datetime
        The first and the last level, without a zone; each begins a step.
    step : str
        ``minute``, ``hour`` or ``day``: a moment stands for the step that it is in.
    time_zone : str, optional
        The zone whose clock the levels are on, such as ``Europe/Oslo``; without it, moments that
        know their zone have no level.
    """

    low: dt.datetime
    high: dt.datetime
    step: str
    time_zone: str | None = None
    sql_type: ClassVar[str] = "TIMESTAMP"

    def _check(self) -> None:
        if self.step not in STEPS:
            raise ValueError(
                f"{self.name}: step is {self.step!r}, but must be one of {', '.join(STEPS)}"
            )
        for moment in (self.low, self.high, *([] if self.other is None else [self.other])):
            if not isinstance(moment, dt.datetime) or moment.tzinfo is not None:
                raise ValueError(
                    f"{self.name}: {moment!r} is not a date and time without an offset"
                )
        for moment in (self.low, self.high):
            start = self.floor(moment)
            if start != moment:
                raise ValueError(
                    f"{self.name}: {moment} must be the start of its {self.step}, "
                    f"which begins at {start}"
                )
        if self.low > self.high:
            raise ValueError(f"{self.name}: low {self.low} is after high {self.high}")

    def floor(self, moment: dt.datetime) -> dt.datetime:
        """The beginning of the step that a moment is in.

        >>> noon = dt.datetime(2024, 2, 29, 12)
        >>> axis = TimestampAxis(name="at", low=noon, high=noon, step="hour")
        >>> str(axis.floor(noon + dt.timedelta(minutes=59)))
        '2024-02-29 12:00:00'
        """
        midnight = dt.datetime.combine(moment.date(), dt.time())
        return midnight + (moment - midnight) // STEPS[self.step] * STEPS[self.step]

    def position_of(self, moment: dt.datetime) -> int | None:
        """The position of a level; None if no regular level is this moment."""
        place, rest = divmod(moment - self.low, STEPS[self.step])
        return place if not rest and 0 <= place < self.n_regular else None

    @property
    def n_regular(self) -> int:
        """The number of steps from the first to the last."""
        return (self.high - self.low) // STEPS[self.step] + 1

    @cached_property
    def regular(self) -> tuple[dt.datetime, ...]:
        """The beginning of every step."""
        first, step = np.datetime64(self.low, "us"), np.timedelta64(STEPS[self.step])
        moments: list[dt.datetime] = (first + np.arange(self.n_regular) * step).tolist()
        return tuple(moments)
