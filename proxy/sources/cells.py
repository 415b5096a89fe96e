"""Where the encoded rows of a table are kept, and the SQL that counts them, again and again.

What is kept contains only positions of declared columns: here in memory, in a database that can
reach no files, extensions or settings; on disk: extract/cells_on_disk.py. All of this is private.

Every cell with its count is given as bytes in a canonical order. Cells are sorted by their
positions, column after column, so that the result does not depend on the order of the file. A large
table is sorted in consecutive pieces, so that the memory needed does not grow with it.

A grouping counts levels in runs. A few runs are a CASE; many are a table of the level as which each
is counted, which is joined: a constant list of 100,000 levels takes twenty times as long. Rows that
are not counted are left out before they are grouped.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from accountant import BY_ITSELF, NOT_COUNTED, Grouping, LevelRuns
from proxy.sources.closed import Connection, closed_database

N_RECORDS_AT_ONCE = 2**20
N_CELLS_A_BATCH = 2**16
EVERYTHING = "true"


def counting_sql(columns: Iterable[str], condition: str = EVERYTHING) -> str:
    """SQL for the occupied cells of some columns of the table `cells`, and their counts."""
    named = ", ".join(columns)
    if not named:
        return f"SELECT count(*) AS n_records FROM cells WHERE {condition}"  # noqa: S608 - generated names only
    return (
        f"SELECT {named}, count(*) AS n_records FROM cells WHERE {condition} "  # noqa: S608 - generated names only
        "GROUP BY ALL ORDER BY ALL"
    )


def cells_in_order(
    columns: Sequence[str], connection: Connection, within: str = EVERYTHING
) -> Iterator[bytes]:
    """Positions in these columns and counts, 64 bits each, little-endian, cell after cell.

    Of the rows within a condition.
    """
    ((n_records,),) = connection.execute(counting_sql((), within)).fetchall()
    for condition in _pieces(columns, within, n_records, connection):
        for batch in connection.sql(counting_sql(columns, condition)).to_arrow_reader(
            N_CELLS_A_BATCH
        ):
            yield cell_bytes(batch)


def cell_bytes(batch: pa.RecordBatch) -> bytes:
    """Cells and their counts, as bytes."""
    arrays = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
    return np.column_stack(arrays).astype("<i8").tobytes()


def _pieces(
    columns: Sequence[str], within: str, n_records: int, connection: Connection
) -> Iterator[str]:
    """Conditions that split the rows within a condition into pieces, in the order of cells."""
    if n_records <= N_RECORDS_AT_ONCE or not columns:
        yield within
        return
    first, *others = columns
    for low, high, n_found in _runs(first, within, connection):
        condition = f"{within} AND {first} BETWEEN {low} AND {high}"
        yield from _pieces(others, condition, n_found, connection)


def _runs(column: str, within: str, connection: Connection) -> list[tuple[int, int, int]]:
    """Runs of levels (low, high, number of records), each run small enough where possible."""
    runs: list[tuple[int, int, int]] = []
    found = connection.execute(counting_sql([column], within))
    while levels := found.fetchmany(N_CELLS_A_BATCH):
        for level, n_records in levels:
            low, _, n_before = runs[-1] if runs else (level, level, N_RECORDS_AT_ONCE)
            if n_before + n_records <= N_RECORDS_AT_ONCE:
                runs[-1] = low, level, n_before + n_records
            else:
                runs.append((level, level, n_records))
    return runs


N_RUNS_IN_CASE_MAX: Final = 64


@dataclass(frozen=True, eq=False)
class GroupedCells:
    """Columns to select from `cells`, with the levels as they are counted.

    Parameters
    ----------
    columns : sequence of str
        An expression for each axis of the scope.
    tables : mapping of str to pyarrow.Table
        What to join, by name: `level`, and the level as which it is `counted`.
    origin : str
        The FROM clause, with its joins and its condition.
    """

    columns: Sequence[str]
    tables: Mapping[str, pa.Table]
    origin: str

    @property
    def counting_sql(self) -> str:
        """SQL for the occupied cells and their counts."""
        listed = "".join(f"{column}, " for column in self.columns)
        # Groups of constants alone would be one cell even where there is no row.
        grouped = " GROUP BY ALL HAVING count(*) > 0" if self.columns else ""
        return f"SELECT {listed}count(*) AS n_records {self.origin}{grouped}"

    def of_units_sql(self, beside: Sequence[str]) -> str:
        """SQL for the occupied cells of each unit and their counts.

        `beside` are further columns, which are the same in all rows of a unit.
        """
        listed = ", ".join([*self.columns, *beside])
        return f"SELECT {listed}, count(*) AS n_records {self.origin} GROUP BY ALL"


def grouped_cells(grouping: Grouping, column_of: Mapping[str, str]) -> GroupedCells:
    """How a grouping is read from `cells`, whose columns have these names."""
    columns, joins, conditions = [], [], ["true"]
    tables: dict[str, pa.Table] = {}
    for place, (name, runs) in enumerate(zip(grouping.scope, grouping.runs, strict=True)):
        column = f"cells.{column_of[name]}"
        if runs.n_runs <= N_RUNS_IN_CASE_MAX:
            columns.append(_case(column, runs))
            conditions += _left_out(column, runs)
            continue
        table = f"levels_{place}"
        tables[table] = _levels(runs)
        joins.append(f" JOIN {table} ON {table}.level = {column}")
        columns.append(f"{table}.counted")
    origin = f"FROM cells{''.join(joins)} WHERE {' AND '.join(conditions)}"
    named = [f"{column} AS place_{place}" for place, column in enumerate(columns)]
    return GroupedCells(named, tables, origin)


def _case(column: str, runs: LevelRuns) -> str:
    """The level as which a column's is counted, where it is counted."""
    if runs.n_runs == 1:
        return _counted(column, int(runs.counted_as[0]))
    *some, last = zip(runs.ends.tolist(), runs.counted_as.tolist(), strict=True)
    cases = "".join(f" WHEN {column} < {end} THEN {_counted(column, one)}" for end, one in some)
    return f"CASE{cases} ELSE {_counted(column, last[1])} END"


def _counted(column: str, counted_as: int) -> str:
    """How a run's levels are written; where they are not counted, no row is left."""
    return column if counted_as == BY_ITSELF else str(max(counted_as, 0))


def _left_out(column: str, runs: LevelRuns) -> list[str]:
    """Conditions that leave out what is not counted."""
    spans = zip(runs.starts.tolist(), runs.ends.tolist(), runs.counted_as.tolist(), strict=True)
    return [
        f"{column} NOT BETWEEN {start} AND {end - 1}"
        for start, end, counted_as in spans
        if counted_as == NOT_COUNTED
    ]


def _levels(runs: LevelRuns) -> pa.Table:
    """Every level that is counted, and the level as which it is."""
    levels = np.arange(runs.n_levels, dtype=np.int64)
    counted = runs.at(levels)
    is_counted = counted != NOT_COUNTED
    return pa.table({"level": levels[is_counted], "counted": counted[is_counted]})


N_ROWS_A_BATCH: Final = 2**17
CELLS: Final = "cells"  # the relation of the rows, wherever they are kept


class Cells(Protocol):
    """The encoded rows of one table, written once."""

    folder: Path | None
    """Where rows that are on their way may be put, encrypted; None to keep them in memory."""

    def keep(self, rows: pa.RecordBatchReader) -> None:
        """Keep these rows, and no others."""
        ...

    def reading(self, columns: Collection[str]) -> AbstractContextManager[Connection]:
        """A connection whose relation `cells` has at least these columns, to be read once."""
        ...

    def rows(self, columns: Sequence[str], condition: str) -> Iterator[pa.RecordBatch]:
        """These columns of the rows within a condition, in no order."""
        ...

    def in_order(self, columns: Sequence[str], condition: str) -> Iterator[bytes]:
        """The cells of the rows within a condition and their counts, in the order of positions."""
        ...


class CellsInMemory:
    """The encoded rows of one table, in a database in memory."""

    folder: Path | None = None

    def __init__(self) -> None:
        self._connection = closed_database()

    def keep(self, rows: pa.RecordBatchReader) -> None:
        """Keep these rows, and no others."""
        with self._connection.cursor() as cursor:
            cursor.register("found", rows)
            cursor.execute(f"CREATE OR REPLACE TABLE {CELLS} AS FROM found")
            cursor.unregister("found")

    @contextmanager
    def reading(self, columns: Collection[str]) -> Iterator[Connection]:  # noqa: ARG002 - all are there
        """A connection to the rows; one connection serves one thread at a time."""
        with self._connection.cursor() as cursor:
            yield cursor

    def rows(self, columns: Sequence[str], condition: str) -> Iterator[pa.RecordBatch]:
        """These columns of the rows within a condition, in no order."""
        sql = f"SELECT {', '.join(columns)} FROM {CELLS} WHERE {condition}"  # noqa: S608 - generated names only
        with self._connection.cursor() as cursor:
            yield from cursor.sql(sql).to_arrow_reader(N_ROWS_A_BATCH)

    def in_order(self, columns: Sequence[str], condition: str) -> Iterator[bytes]:
        """The cells of the rows within a condition and their counts, in the order of positions."""
        with self._connection.cursor() as cursor:
            yield from cells_in_order(columns, cursor, condition)
