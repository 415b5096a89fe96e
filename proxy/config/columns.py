"""Declared columns: one table of the configuration file per column, and the axis it declares.

The kinds are those of `cube.axis`; the keys are what the owner of the data writes.

`levels_from = "cities.csv:city"` are the levels of a category, read from a public file's column.
They are read when the configuration is, and are declared as if they stood in it: a file that
changed declares other levels. How the file is written is what a public table of it says. A private
table's own file is refused, whatever its path: the values in its rows are no public knowledge.

`grows` is the column along which a table grows, and how far its rows are closed. Nothing here moves
a horizon; the ledger says how far a table is readable (accountant/gate/gate.py).

Days and moments are TOML's own, or the same between quotes. What is between quotes is read as ISO
8601 writes it, and as nothing else: no local order of day and month is guessed. Time zones are
those of the database that reads the rows' moments on their clocks.
"""

import datetime as dt
import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import Field, PlainValidator, ValidationError, field_validator, model_validator

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
from cube.horizon import Span
from cube.refusals import ConfigurationInvalid, InvalidRequest
from cube.schema import Schema
from cube.target import SumTarget
from proxy.sources import (
    Problems,
    Section,
    SourceKind,
    SourceLocation,
    TextFormat,
    closed_database,
    kind_of,
)
from proxy.sources.public import read_texts

N_MINUTES_SET_BACK_MAX: Final = 25 * 60  # clocks that crossed the date line went back by a day


@cache
def is_time_zone(name: str) -> bool:
    """Whether a name is that of a time zone.

    >>> is_time_zone("Europe/Oslo"), is_time_zone("Europe/Atlantis")
    (True, False)
    """
    with closed_database() as database:
        zones = "SELECT count(*) > 0 FROM pg_timezone_names() WHERE name = ?"
        ((is_known,),) = database.execute(zones, [name]).fetchall()
    return bool(is_known)


def local_time_from(instant: dt.datetime, zone: str) -> dt.datetime:
    """The earliest that the clock of a zone shows at an instant, or will show after it.

    What comes before it is over: no moment from the instant on is called by such a time. Where a
    clock will be set back within the hour that is the time to which it is set back.

    >>> str(local_time_from(dt.datetime(2026, 10, 25, 0, 30, tzinfo=dt.UTC), "Europe/Oslo"))
    '2026-10-25 02:00:00'
    >>> str(local_time_from(dt.datetime(2026, 10, 25, 1, 30, tzinfo=dt.UTC), "Europe/Oslo"))
    '2026-10-25 02:30:00'
    """
    # Clocks are set at whole minutes: these are looked at, and the instant itself.
    shown = """
        SELECT min(timezone($zone, moment)) FROM (
            SELECT CAST($instant AS TIMESTAMPTZ) AS moment UNION ALL
            SELECT date_trunc('minute', CAST($instant AS TIMESTAMPTZ)) + to_minutes(i)
            FROM range(1, $n) AS t(i)
        )
    """
    given = {"zone": zone, "instant": instant.isoformat(), "n": N_MINUTES_SET_BACK_MAX + 1}
    with closed_database() as database:
        ((local,),) = database.execute(shown, given).fetchall()
    found: dt.datetime = local
    return found


@dataclass(frozen=True, slots=True)
class LevelFiles:
    """Where level files are looked for, and which files they may not be.

    Parameters
    ----------
    folder : Path
        The folder of the configuration file.
    private : frozenset of Path
        The files of every private table, links followed.
    texts : mapping of Path to TextFormat
        How the files of public tables are written, links followed, where that is said.
    """

    folder: Path
    private: frozenset[Path] = frozenset()
    texts: Mapping[Path, TextFormat] = field(default_factory=dict)

    def levels(
        self, written: str, keys: tuple[str, ...], problems: Problems
    ) -> tuple[str, ...] | None:
        """The values of a column in the order of the file, each once; None on problems."""
        name, colon, column = written.rpartition(":")
        if not (name and colon and column):
            problems.add(keys, 'should be a file and its column, such as "cities.csv:city"')
            return None
        path = self.folder / name
        if kind_of(path) not in {SourceKind.CSV, SourceKind.PARQUET} or not path.is_file():
            problems.add(keys, "should name a .csv or .parquet file that exists")
            return None
        if path.resolve() in self.private:
            problems.add(keys, "names the file of a private table; levels are public")
            return None
        try:
            text = self.texts.get(path.resolve())
            return read_texts(SourceLocation(path=path, text=text), column)
        except ConfigurationInvalid as refusal:
            problems.add(keys, refusal.explain())
            return None


_DAY_LENGTH: Final = len("2026-10-31")


def _day(value: Any) -> dt.date:
    """A day; ValueError if it is none.

    >>> _day("2026-10-31")
    datetime.date(2026, 10, 31)
    """
    found = _read(value)
    if isinstance(found, dt.datetime) or not isinstance(found, dt.date):
        raise ValueError("should be a day, such as 2026-10-31")  # noqa: TRY004 - so pydantic reads it
    return found


def _moment(value: Any) -> dt.date:
    """A moment or a day; ValueError if it is neither.

    >>> _moment("2026-10-31 07:00")
    datetime.datetime(2026, 10, 31, 7, 0)
    """
    found = _read(value)
    if not isinstance(found, dt.date):
        raise ValueError("should be a day or a moment, such as 2026-10-31T23:00")  # noqa: TRY004 - so pydantic reads it
    return found


def _last_level(value: Any) -> dt.date | int:
    """A day, a moment or a whole number; ValueError if it is none of them."""
    found = _read(value)
    if isinstance(found, bool) or not isinstance(found, dt.date | int):
        raise ValueError("should be a day such as 2026-10-31, a moment or a whole number")  # noqa: TRY004 - so pydantic reads it
    return found


def _read(value: Any) -> Any:
    """What a text says, if it is a day or a moment in full; other values as they are."""
    if not isinstance(value, str) or len(value) < _DAY_LENGTH:
        return value
    try:
        is_day = len(value) == _DAY_LENGTH
        return dt.date.fromisoformat(value) if is_day else dt.datetime.fromisoformat(value)
    except ValueError:
        return value


Day: TypeAlias = Annotated[dt.date, PlainValidator(_day)]
Moment: TypeAlias = Annotated[dt.datetime | dt.date, PlainValidator(_moment)]
LastLevel: TypeAlias = Annotated[dt.datetime | dt.date | int, PlainValidator(_last_level)]


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
            raise ValueError(
                f"{name}: time_zone {self.time_zone!r} is not a time zone; write one such as "
                "Europe/Oslo"
            )
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


_DURATION: Final = re.compile(r"(\d{1,4}) (hour|day|week)s?")
_KINDS: Final[dict[type[Axis], str]] = {
    DateAxis: "a date",
    IntegerAxis: "a whole number",
    TimestampAxis: "a date, or a moment without an offset",
}
_EXAMPLES: Final[dict[type[Axis], str]] = {
    DateAxis: "2026-10-31",
    IntegerAxis: "1000",
    TimestampAxis: "2026-10-31T23:00",
}
_UNITS: Final = {"hour": "hours", "day": "days", "week": "weeks"}


class GrowsSection(Section):
    """How the file says it."""

    axis: str = Field(min_length=1)
    closed_through: LastLevel | None = None
    closed_after: str | None = None

    @field_validator("closed_after")
    @classmethod
    def _is_a_duration(cls, value: str | None) -> str | None:
        if value is not None and _DURATION.fullmatch(value) is None:
            raise ValueError('should be a duration such as "3 days"')
        return value

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if (self.closed_through is None) == (self.closed_after is None):
            raise ValueError("should have either closed_through or closed_after")
        return self


@dataclass(frozen=True, slots=True)
class Closing:
    """Up to where rows are closed: none is added, taken away or changed any more.

    Parameters
    ----------
    through : date, datetime or int, optional
        The last level whose rows are closed; of a timestamp, a day stands for all of its levels.
    after : timedelta, optional
        How long after its end a day, or a step of a timestamp, is closed.
    """

    through: dt.date | int | None = None
    after: dt.timedelta | None = None

    def horizon(self, schema: Schema, now: dt.datetime) -> int:
        """How many levels of the table's axis, from the first, are closed at a moment.

        A step on the clock of a time zone has ended once no later moment is called by a time in it:
        where clocks are set back, what comes a second time is not over the first time.

        Parameters
        ----------
        schema : Schema
            The schema of a table that grows.
        now : datetime
            The present time, with a time zone.
        """
        if schema.grows is None:
            raise ValueError(f"{schema.table} does not grow")
        axis = schema.by_name[schema.grows]
        if self.after is None:
            return horizon_of(axis, self.through)
        past = now.astimezone(dt.UTC) - self.after
        if isinstance(axis, TimestampAxis):
            local = past if axis.time_zone is None else local_time_from(past, axis.time_zone)
            return horizon_of(axis, local.replace(tzinfo=None) - STEPS[axis.step])
        return horizon_of(axis, max(past.date() - dt.timedelta(days=1), _before(axis)))


def horizon_of(axis: Axis, last: dt.date | int | None) -> int:
    """How many levels there are up to one, which need not be among them.

    Raises
    ------
    InvalidRequest
        If it is not of the axis's type.
    """
    return max(0, min(_place(axis, last, dt.time.max) + 1, axis.size))


def levels_through(axis: Axis, first: dt.date | int, last: dt.date | int) -> Span:
    """The levels from one through another; of a timestamp, a day stands for all of its levels.

    Raises
    ------
    InvalidRequest
        If one is not of the axis's type, or the first comes after the last.
    """
    start = max(0, min(_place(axis, first, dt.time.min), axis.size))
    end = horizon_of(axis, last)
    if _place(axis, first, dt.time.min) > _place(axis, last, dt.time.max):
        raise InvalidRequest(f"{first} comes after {last}.", hint="Write FIRST..LAST.")
    return start, end


def _place(axis: Axis, level: dt.date | int | None, of_a_day: dt.time) -> int:
    """Which level of an unbounded axis this is; of a day, the one that has this time of it."""
    match axis:
        case DateAxis(low=low) if type(level) is dt.date:
            return (level - low).days
        case IntegerAxis(low=low) if type(level) is int:
            return level - low
        case TimestampAxis(low=low) if isinstance(level, dt.date) and not _has_offset(level):
            is_moment = isinstance(level, dt.datetime)
            moment = level if is_moment else dt.datetime.combine(level, of_a_day)
            return (moment - low) // STEPS[axis.step]
    raise InvalidRequest(f"{axis.name} is closed through {_KINDS[type(axis)]}, not {level}.")


def read_level(axis: Axis, written: str) -> dt.date | int:
    """A level of the axis of a growing table, as a person writes it; InvalidRequest otherwise."""
    try:
        if isinstance(axis, TimestampAxis) and len(written) > len(_EXAMPLES[DateAxis]):
            return dt.datetime.fromisoformat(written)
        is_whole = isinstance(axis, IntegerAxis)
        return int(written) if is_whole else dt.date.fromisoformat(written)
    except ValueError:
        example = _EXAMPLES[type(axis)]
        raise InvalidRequest(
            f"{written} is not a level of {axis.name}.", hint=f"Write it as {example}."
        ) from None


def closing_of(section: GrowsSection, schema: Schema, problems: Problems) -> Closing | None:
    """What a section says; None with a problem if it does not fit the column.

    Parameters
    ----------
    schema : Schema
        The schema of a table that grows.
    problems : Problems
        Where problems are recorded.
    """
    axis = schema.by_name[section.axis]
    keys = ("tables", schema.table, "grows")
    found = _DURATION.fullmatch(section.closed_after or "")
    if found is not None:
        if not isinstance(axis, DateAxis | TimestampAxis):
            what = "is for a column of dates or timestamps; say closed_through"
            problems.add((*keys, "closed_after"), what)
            return None
        return Closing(after=dt.timedelta(**{_UNITS[found[2]]: int(found[1])}))
    try:
        n_closed = horizon_of(axis, section.closed_through)
    except InvalidRequest as wrong:
        problems.add((*keys, "closed_through"), wrong.message.rstrip("."))
        return None
    if not n_closed:
        problems.add((*keys, "closed_through"), f"is before the first level of {axis.name}")
        return None
    return Closing(through=section.closed_through)


def grows_section(values: Any, keys: tuple[str, ...], problems: Problems) -> GrowsSection | None:
    """The section, or its problems; None if there is none."""
    if values is None:
        return None
    return problems.section(GrowsSection, values, (*keys, "grows"))


def _has_offset(moment: dt.date) -> bool:
    return isinstance(moment, dt.datetime) and moment.tzinfo is not None


def _before(axis: Axis) -> dt.date:
    return axis.low - dt.timedelta(days=1) if isinstance(axis, DateAxis) else dt.date.min
