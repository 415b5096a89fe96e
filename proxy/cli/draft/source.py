"""What `tacit init` looks at: the names and types of a source's columns, and rows only if asked.

Of a file of text, types are those that all of its fields have, so its rows are gone through in any
case; nothing of them stays. Nothing here decides what a draft says.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import duckdb
import pyarrow as pa

from cube.refusals import ConfigurationInvalid
from planner.sql.messages import listed, suggestion
from proxy.cli.draft.levels import Seen, UnitsSeen
from proxy.cli.draft.text_file import (
    ToldFormat,
    ask_for_decimal,
    check_names,
    check_told_apart,
    not_read,
    said_format,
)
from proxy.sources import files, postgres_rows
from proxy.sources.axis_sql import INTEGERS, MOMENTS, REALS, TEXT, WITHIN_BIGINT, ZONED
from proxy.sources.closed import name_sql
from proxy.sources.location import PostgresRows, SourceKind, SourceLocation
from proxy.sources.reading import wrong_with
from proxy.sources.text_format import NOT_COMPRESSED, TextFormat, compression_of, first_fields

Drafted: TypeAlias = SourceLocation | PostgresRows
Tell: TypeAlias = Callable[[float | None], None]  # the share of the rows that is read, if known
FIELDS_AT_ONCE: Final = 2**21
ROWS_AT_ONCE_MIN: Final = 2**11
UNREADABLE: Final = (duckdb.Error, pa.ArrowException, csv.Error, OSError, UnicodeError)


@dataclass(frozen=True, slots=True)
class Look:
    """A source that was looked at.

    Parameters
    ----------
    columns : sequence of (str, str)
        Their names, and their types as DuckDB calls them, without what stands in brackets.
    text : TextFormat, optional
        How it is written, if it is text.
    unnamed : sequence of int
        The places, from 1, of columns of text without a name.
    primary_key : sequence of str
        The columns of a database's PRIMARY KEY.
    seen : dict
        What the rows say about each column; empty if they were not to be read.
    units : dict
        What they say about whom they are about, for each column that may be the unit.
    """

    columns: Sequence[tuple[str, str]]
    text: TextFormat | None = None
    unnamed: Sequence[int] = ()
    primary_key: Sequence[str] = ()
    seen: dict[str, Seen] = field(default_factory=dict)
    units: dict[str, UnitsSeen] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be looked at.

    Parameters
    ----------
    columns : sequence of str
        Only these columns, in any letter case; all if there are none.
    levels : bool
        Whether levels are to be read from the rows.
    units : callable
        The columns that may be the unit, of names and types; a type is empty if not yet known.
    tell : callable
        Is told how much of the rows is read.
    """

    columns: Sequence[str] = ()
    levels: bool = False
    units: Callable[[Sequence[tuple[str, str]], Sequence[str]], Sequence[str]]
    tell: Tell = lambda _share: None


def look_at(location: Drafted, told: ToldFormat, wanted: Wanted) -> Look:
    """Look at a source.

    Raises
    ------
    ConfigurationInvalid
        If it cannot be read, or if it is not sure how.
    """
    if isinstance(location, PostgresRows):
        _refuse_told(location.label, told)
        return _look_there(location, wanted)
    if not location.path.exists():
        raise ConfigurationInvalid(f"{location.path} cannot be read: there is no such file.")
    try:
        states = files.states_of(location.files)
        if location.kind is SourceKind.CSV:
            text = said_format(location.path, told)
            location = SourceLocation(path=location.path, text=text)
            return _look_at_text(location, states, told, wanted)
        _refuse_told(str(location.path), told)
        return _look_at_types(location, states, wanted)
    except UNREADABLE:  # its text may quote a row
        raise not_read(location, wrong_with(location.path, location)) from None


def _refuse_told(label: str, told: ToldFormat) -> None:
    if not told.is_empty:
        raise ConfigurationInvalid(
            f"{label} is not a text file.",
            hint="--delimiter, --decimal, --encoding and --header are for .csv and .tsv files.",
        )


def _look_at_text(
    location: SourceLocation,
    states: Mapping[Path, files.FileState],
    told: ToldFormat,
    wanted: Wanted,
) -> Look:
    path, text = location.path, location.text_format
    fields = first_fields(path, compression_of(path), text)
    if text.header:
        check_names(path, fields, told)
    names = text.names(fields)
    chosen = _chosen(path, [name for name in names if name], wanted.columns)
    seen = {
        name: Seen(
            name,
            is_text=True,
            decimal=text.decimal,
            keeps_levels=wanted.levels,
            written=name.strip().lower() if told.header is None else "",
        )
        for name in chosen
    }
    untyped = [(name, "") for name in chosen]
    units = _units(wanted, untyped, (), chosen)
    with files.decoded([location], states) as readable, _database() as connection:
        relation = files.opened(location, readable, connection)
        selected = ", ".join(f"{relation.texts[name].sql} AS {name_sql(name)}" for name in chosen)
        sql = f"SELECT {selected} FROM {relation.sql} AS source"  # noqa: S608 - quoted names
        n_bytes = states[path].size if compression_of(path) == NOT_COMPRESSED else 0
        one_pass = _Pass(seen, units, wanted.tell, has_types=False, n_bytes=n_bytes)
        one_pass.through(connection, sql)
    check_told_apart(
        path,
        told,
        has_other_type=any(one.type_name != TEXT for one in seen.values()),
        comes_again=any(one.comes_again for one in seen.values()),
    )
    if told.decimal is None and any(one.has_decimal_commas for one in seen.values()):
        raise ask_for_decimal(location)
    return Look(
        [(one.name, one.type_name) for one in seen.values()],
        text=text,
        unnamed=[place for place, name in enumerate(names, start=1) if not name],
        seen=seen if wanted.levels else {},
        units=units,
    )


def _look_at_types(
    location: SourceLocation, states: Mapping[Path, files.FileState], wanted: Wanted
) -> Look:
    """A file whose columns have types."""
    with _database() as connection:
        relation = files.opened(location, states, connection)
        described = connection.execute(f"DESCRIBE FROM {relation.named}").fetchall()
        every = [(name, kind.split("(")[0]) for name, kind, *_ in described]
        columns = _of(every, _chosen(location.path, [name for name, _ in every], wanted.columns))
        seen = _typed(columns) if wanted.levels else {}
        units = _units(wanted, columns, (), [*seen])
        if seen or units:
            sql = _typed_rows(dict(columns), [*seen], [*units], relation.named)
            counted = f"SELECT count(*) FROM {relation.named}"  # noqa: S608 - quoted names
            ((n_rows,),) = connection.execute(counted).fetchall()
            _Pass(seen, units, wanted.tell, n_rows=n_rows).through(connection, sql)
    return Look(columns, seen=seen, units=units)


def _look_there(location: PostgresRows, wanted: Wanted) -> Look:
    """A table in a database, whose rows stream by if they are asked for."""
    every = postgres_rows.described(location)
    primary_key = postgres_rows.primary_key(location)
    names = _chosen(location.label, [name for name, _ in every], wanted.columns)
    columns = _of(every, names)
    if not wanted.levels:
        return Look(columns, primary_key=primary_key)
    seen = _typed(columns)
    units = _units(wanted, columns, primary_key, [*seen])
    try:
        with (
            _database() as connection,
            postgres_rows.opened(location, names, connection) as relation,
        ):
            given = relation.columns or {}
            renamed = ", ".join(
                f"{given[name.casefold()].sql} AS {name_sql(name)}" for name in names
            )
            rows = f"(SELECT {renamed} FROM {relation.sql} AS source)"  # noqa: S608 - quoted names
            sql = _typed_rows(dict(columns), [*seen], [*units], rows)
            _Pass(seen, units, wanted.tell).through(connection, sql)
    except duckdb.Error:  # its text may quote a row
        raise ConfigurationInvalid(
            f"No levels can be read from the rows of {location.label}.",
            hint="Draft without --read-levels-from-data and write the levels down.",
        ) from None
    return Look(columns, primary_key=primary_key, seen=seen, units=units)


def _database() -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    """A database that keeps nothing on disk."""
    connection: AbstractContextManager[duckdb.DuckDBPyConnection] = duckdb.connect(
        config={
            "temp_directory": "",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )
    return connection


def _chosen(label: object, names: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The columns to look at, in the order of the source."""
    folded = {name.casefold() for name in wanted}
    there = [name for name in names if not wanted or name.casefold() in folded]
    absent = [one for one in wanted if one.casefold() not in {name.casefold() for name in there}]
    if absent:
        hint = suggestion(absent[0], names)
        raise ConfigurationInvalid(f"{label} has no column {listed(absent)}.", hint=hint)
    return there


def _of(columns: Sequence[tuple[str, str]], names: Sequence[str]) -> list[tuple[str, str]]:
    kinds = dict(columns)
    return [(name, kinds[name]) for name in names]


def _units(
    wanted: Wanted,
    columns: Sequence[tuple[str, str]],
    primary_key: Sequence[str],
    seen: Sequence[str],
) -> dict[str, UnitsSeen]:
    """What is to be seen of whom rows are about, for the columns that may say it."""
    if not wanted.levels:
        return {}
    return {
        name: UnitsSeen([one for one in seen if one != name])
        for name in wanted.units(columns, primary_key)
    }


def _typed(columns: Sequence[tuple[str, str]]) -> dict[str, Seen]:
    """What is to be seen of columns with a type that can be served."""
    return {
        name: Seen(name, is_text=False, keeps_levels=True)
        for name, kind in columns
        if _value_sql(name, kind)
    }


def _typed_rows(
    kinds: dict[str, str], names: Sequence[str], units: Sequence[str], relation: str
) -> str:
    """SQL for the values of columns, for which of them are NULL, and for keys as text."""
    values = [f"{_value_sql(name, kinds[name])} AS value_{at}" for at, name in enumerate(names)]
    nulls = [f"{name_sql(name)} IS NULL AS null_{at}" for at, name in enumerate(names)]
    keys = [f"CAST({name_sql(name)} AS VARCHAR) AS key_{at}" for at, name in enumerate(units)]
    return f"SELECT {', '.join([*values, *nulls, *keys])} FROM {relation} AS source"  # noqa: S608 - quoted names


def _value_sql(name: str, kind: str) -> str:
    """SQL for a value as bounds and levels need it; empty for a type that cannot be served."""
    raw = name_sql(name)
    if kind in {TEXT, "ENUM"}:
        return f"CAST({raw} AS VARCHAR)"
    if kind == "BOOLEAN" or kind in WITHIN_BIGINT:
        return raw
    if kind in INTEGERS | REALS:
        return f"CASE WHEN isfinite(CAST({raw} AS DOUBLE)) THEN CAST({raw} AS DOUBLE) END"
    if kind in MOMENTS or kind == ZONED:
        local = f"timezone('UTC', {raw})" if kind == ZONED else raw
        day = f"CAST({local} AS DATE)"
        return f"CASE WHEN isfinite({day}) AND year({day}) BETWEEN 1 AND 9999 THEN {day} END"
    return ""


@dataclass(frozen=True, slots=True)
class _Pass:
    """One reading of rows: what is to be seen of them, and how much of them is read.

    Parameters
    ----------
    has_types : bool
        Whether NULLs and keys are columns of their own, beside the values.
    n_rows, n_bytes : int
        How much there is, as rows or as text; 0 if that is not known.
    """

    seen: dict[str, Seen]
    units: dict[str, UnitsSeen]
    tell: Tell
    has_types: bool = True
    n_rows: int = 0
    n_bytes: int = 0

    def through(self, connection: duckdb.DuckDBPyConnection, sql: str) -> None:
        """Go through rows once."""
        names, n_read = [*self.seen], 0
        n_at_once = max(ROWS_AT_ONCE_MIN, FIELDS_AT_ONCE // max(1, len(names)))
        for batch in connection.sql(sql).to_arrow_reader(n_at_once):
            values = dict(zip(names, batch.columns, strict=False))
            nulls = batch.columns[len(names) : 2 * len(names)] if self.has_types else ()
            keys = batch.columns[2 * len(names) :] if self.has_types else ()
            for at, (name, one) in enumerate(self.seen.items()):
                one.add(values[name], nulls[at] if nulls else None)
            for at, (name, unit) in enumerate(self.units.items()):
                unit.add(keys[at] if keys else values[name], values)
            n_read += batch.num_rows if self.n_rows else _n_bytes_of(batch)
            whole = self.n_rows or self.n_bytes
            self.tell(min(1.0, n_read / whole) if whole else None)


def _n_bytes_of(batch: pa.RecordBatch) -> int:
    """How many bytes of a file of text the rows take, about: text, and what separates it."""
    n_fields: int = batch.num_rows * batch.num_columns
    n_bytes = sum(int(column.nbytes) for column in batch.columns)
    return max(0, n_bytes - 4 * n_fields) + n_fields
