"""Declared columns: one table of the configuration file per column, and the axis it declares.

The kinds are those of `cube.axis`; the keys are what the owner of the data writes.
"""

import datetime as dt
from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from cube.axis import (
    STEPS,
    Axis,
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    MeasureAxis,
    NumericAxis,
    TimestampAxis,
)
from cube.target import SumTarget
from proxy.config.levels_from import LevelFiles
from proxy.config.moments import Day, Moment
from proxy.sources.problems import Problems, Section
from proxy.sources.time_zones import is_time_zone


class ColumnSection(Section):
    """The keys that every column may have."""

    null: bool = False

    @abstractmethod
    def axis(self, name: str) -> Axis:
        """The declared axis; ValueError if the declaration is inconsistent."""


class CategoryColumn(ColumnSection):
    """Text with listed levels, or those of a public file's column."""

    kind: Literal["category"]
    levels: list[str] | None = None
    levels_from: str | None = None
    other: str | None = None

    def axis(self, name: str) -> Axis:
        """The listed levels, in the order of the file."""
        values = tuple(self.levels or ())
        return CategoryAxis(name=name, null=self.null, other=self.other, values=values)


class IntegerColumn(ColumnSection):
    """Whole numbers from low to high."""

    kind: Literal["integer"]
    low: int
    high: int
    other: int | None = None

    def axis(self, name: str) -> Axis:
        """Every whole number of the range."""
        return IntegerAxis(
            name=name, null=self.null, other=self.other, low=self.low, high=self.high
        )


class NumericColumn(ColumnSection):
    """Numbers in bins."""

    kind: Literal["numeric"]
    edges: list[float]
    other: float | None = None

    def axis(self, name: str) -> Axis:
        """One level for each bin."""
        return NumericAxis(name=name, null=self.null, other=self.other, edges=tuple(self.edges))


class BooleanColumn(ColumnSection):
    """Truth values."""

    kind: Literal["boolean"]

    def axis(self, name: str) -> Axis:
        """False and true."""
        return BooleanAxis(name=name, null=self.null)


class DateColumn(ColumnSection):
    """Days from low to high."""

    kind: Literal["date"]
    low: Day
    high: Day
    other: Day | None = None

    def axis(self, name: str) -> Axis:
        """Every day of the range."""
        return DateAxis(name=name, null=self.null, other=self.other, low=self.low, high=self.high)


class TimestampColumn(ColumnSection):
    """Moments from low to high, cut down to whole steps."""

    kind: Literal["timestamp"]
    low: Moment
    high: Moment
    step: Literal["minute", "hour", "day"]
    time_zone: str | None = None
    other: Moment | None = None

    def axis(self, name: str) -> Axis:
        """Every step of the range; a day alone is its first step as low, its last as high."""
        if self.time_zone is not None and not is_time_zone(self.time_zone):
            raise ValueError(f"{name}: time_zone {self.time_zone!r} is no zone, as Europe/Oslo is")
        low, high = _midnight(self.low), _midnight(self.high)
        if not isinstance(self.high, dt.datetime):
            high += STEPS["day"] - STEPS[self.step]
        return TimestampAxis(
            name=name,
            null=self.null,
            other=None if self.other is None else _midnight(self.other),
            low=low,
            high=high,
            step=self.step,
            time_zone=self.time_zone,
        )


def _midnight(day: dt.date) -> dt.datetime:
    """A moment as it is, and a day as its beginning."""
    return day if isinstance(day, dt.datetime) else dt.datetime.combine(day, dt.time())


class MeasureColumn(ColumnSection):
    """Numbers that are summed and averaged, clamped to bounds."""

    kind: Literal["measure"]
    low: int | float
    high: int | float
    step: int | float | None = None
    half_width: float | None = Field(default=None, gt=0)
    relative: float | None = Field(default=None, gt=0, lt=1)
    at_least: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _sums_have_one_target(self) -> Self:
        _ = self.sum_target
        return self

    @property
    def sum_target(self) -> SumTarget | None:
        """The declared target of its sums; None if there is none.

        Raises
        ------
        ValueError
            If both a half-width and a fraction are declared, or `at_least` alone.
        """
        if self.half_width is self.relative is self.at_least is None:
            return None
        return SumTarget(half_width=self.half_width, relative=self.relative, at_least=self.at_least)

    def axis(self, name: str) -> Axis:
        """Levels from low to high, one step apart; the default step is 1 for whole bounds."""
        low, high = as_written(self.low), as_written(self.high)
        if self.step is not None:
            step = as_written(self.step)
        elif low.denominator == high.denominator == 1:
            step = Fraction(1)
        else:
            raise ValueError(
                f"{name}: step is missing; it defaults to 1 only if low and high are whole"
            )
        return MeasureAxis(name=name, null=self.null, low=low, high=high, step=step)


COLUMN_KINDS: dict[str, type[ColumnSection]] = {
    "category": CategoryColumn,
    "integer": IntegerColumn,
    "numeric": NumericColumn,
    "boolean": BooleanColumn,
    "date": DateColumn,
    "timestamp": TimestampColumn,
    "measure": MeasureColumn,
}


def as_written(number: float) -> Fraction:
    """A number of the file, exactly: the shortest decimal of a double is what the file says.

    >>> as_written(0.1), as_written(3)
    (Fraction(1, 10), Fraction(3, 1))
    """
    return Fraction(repr(number))


def read_axis(
    name: str, values: Any, keys: tuple[str, ...], problems: Problems, files: LevelFiles
) -> Axis | None:
    """The axis of one declared column; None, with the problems recorded, if it has any."""
    if not isinstance(values, Mapping):
        problems.add(keys, "should be a table with a kind")
        return None
    kind = values.get("kind")
    model = COLUMN_KINDS.get(kind) if isinstance(kind, str) else None
    if model is None:
        what = "is missing" if kind is None else "is not a kind of column"
        problems.add((*keys, "kind"), f"{what}; kinds are {', '.join(COLUMN_KINDS)}")
        return None
    column = problems.section(model, values, keys)
    if isinstance(column, CategoryColumn):
        column = _with_levels(column, keys, problems, files)
    if column is None:
        return None
    try:
        return column.axis(name)
    except ValueError as error:
        problems.add(keys, str(error).removeprefix(f"{name}: "))
        return None


def _with_levels(
    column: CategoryColumn, keys: tuple[str, ...], problems: Problems, files: LevelFiles
) -> CategoryColumn | None:
    """A category with its levels, which stand in the configuration or in the file it names."""
    if column.levels_from is None:
        if column.levels is None:
            problems.add((*keys, "levels"), "is missing")
            return None
        return column
    if column.levels is not None:
        problems.add((*keys, "levels_from"), "is given beside levels; a column has only one")
        return None
    levels = files.levels(column.levels_from, (*keys, "levels_from"), problems)
    return None if levels is None else column.model_copy(update={"levels": list(levels)})


def read_sum_target(values: Any) -> SumTarget | None:
    """The target that one declared column names for its sums, if it is a measure without problems.

    `read_axis` records the problems.
    """
    if not isinstance(values, Mapping) or values.get("kind") != "measure":
        return None
    try:
        return MeasureColumn.model_validate(dict(values)).sum_target
    except ValidationError:
        return None
