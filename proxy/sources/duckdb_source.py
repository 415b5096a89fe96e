"""A private table as a snapshot: encoded once as positions of levels, then only counted.

The table, or the result of the owner's view, is read when the source opens (reading.py), into
memory unless it was read into other cells before. What is kept contains only declared columns, and
positions instead of values (cells.py). Only the accountant's gate may call `measure` and
`measure_units`.

Counts of earlier groupings are cached beside it: they are as private as the table, are protected by
a lock, and leave only through `measure`. The table never changes, so cached counts stay exact.
"""

import hashlib
import hmac
import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import duckdb
import numpy as np
from numpy.typing import NDArray

from accountant import CellCounts, Grouping, UnitCells
from cube.encoding import canonical_json
from cube.query import Scope
from cube.refusals import SourceUnavailable
from cube.schema import Schema
from planner.cache import BoundedCache
from proxy.sources import files, private_view
from proxy.sources.bounding import UNIT_DIGEST, UNIT_NUMBER, UNIT_WAS_CUT, RowsRead
from proxy.sources.cells import EVERYTHING, Cells, CellsInMemory, GroupedCells, grouped_cells
from proxy.sources.extract import Damaged
from proxy.sources.location import (
    Location,
    PostgresRows,
    PrivateView,
    SourceFiles,
    SourceLocation,
    UnitRows,
)
from proxy.sources.reading import States, read_into, until_read
from proxy.sources.rows_digest import (
    DigestKind,
    RowsDigest,
    digest_of_cells,
    digested_columns,
    heading_of,
)

ALL_ROWS = RowsRead()
N_SCOPES_KEPT = 256
N_CELLS_EACH_MAX = 2**14  # of a scope: so few are counted as fast as classes of them
N_COUNTED_BYTES_MAX = 64 * 2**20


class DuckDbSource:
    """The rows of one private table in which every declared column has a level.

    Parameters
    ----------
    schema : Schema
        The public columns. Other columns of the file are not read.
    location : Location
        The files, the table in a database, the SQL over several, or what says whose units have a
        row each.
    read : RowsRead
        Which of its rows; with the ledger's key where a unit may have several.
    read_before : (Cells, mapping of Path to FileState), optional
        Its rows, if they were read already, and the states of its files then.

    Raises
    ------
    ConfigurationInvalid
        If it cannot be read as declared. The message contains nothing from its rows.
    """

    def __init__(
        self,
        schema: Schema,
        location: Location,
        read: RowsRead = ALL_ROWS,
        read_before: tuple[Cells, States] | None = None,
    ) -> None:
        self._grows = schema.grows
        self._column = {axis.name: f"axis_{place}" for place, axis in enumerate(schema.axes)}
        has_several = schema.rows_per_unit_max > 1
        self._of_units = [UNIT_NUMBER, UNIT_DIGEST, UNIT_WAS_CUT] if has_several else []
        self._heading, self._digested = heading_of(schema), digested_columns(schema)
        self._location = location
        self._counted: BoundedCache[Hashable, CellCounts] = BoundedCache(
            n_entries_max=N_SCOPES_KEPT, n_bytes_max=N_COUNTED_BYTES_MAX
        )
        if read_before is None:
            in_memory = CellsInMemory()
            states = until_read(lambda: read_into(in_memory, schema, location, read))
            read_before = in_memory, states
        self._cells, self._states = read_before
        self._of_rows: dict[tuple[bytes, DigestKind], str] = {}  # by the key, and how it is made

    def fingerprint(self, key: bytes, like: str = "") -> str:
        """The identity of the data, for holders of the key: HMAC-SHA256 in hexadecimal.

        For a file it covers the bytes and the name of the table; for a view also its text and rows;
        for a table in a database where it is, and its rows. The units of a file are the same data
        as its rows.
        """
        kind = DigestKind.of(like)
        where = self._location.of if isinstance(self._location, UnitRows) else self._location
        match where:
            case SourceLocation() | SourceFiles() as location:
                return files.fingerprint(location, key, self._states)
            case PostgresRows() as rows:
                digest = self.rows_fingerprint(key, like)
                text = canonical_json(["postgresql", *rows.where, digest])
                return kind.value + hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
            case PrivateView() as view:
                of_rows: Iterable[bytes] = self._cells_in_order()
                if kind is DigestKind.SUMS:
                    of_rows = [self.rows_fingerprint(key).encode()]
                return kind.value + private_view.fingerprint(view, key, self._states, of_rows)

    def rows_fingerprint(self, key: bytes, like: str = "") -> str:
        """The identity of the rows as they are served: HMAC-SHA256 in hexadecimal.

        It covers the columns' names and every cell with its count, in a way that depends neither on
        the file's order nor on the declaration's; where a unit may have several rows, each unit's.
        """
        made = key, DigestKind.of(like)
        if made not in self._of_rows:
            self._of_rows[made] = self._digest(self._heading, EVERYTHING, key, like)
        return self._of_rows[made]

    def period_fingerprint(self, start: int, end: int, key: bytes, like: str = "") -> str:
        """The same of the rows of some levels of the axis along which the table grows."""
        if self._grows is None:
            raise ValueError("a table that does not grow has no periods")
        inside = f"{self._column[self._grows]} BETWEEN {start} AND {end - 1}"
        return self._digest(["period", start, end, *sorted(self._column)], inside, key, like)

    def _digest(self, heading: Sequence[str | int], condition: str, key: bytes, like: str) -> str:
        """The digest of some rows, made as the one is that it is to be like."""
        if DigestKind.of(like) is DigestKind.CELLS:
            return digest_of_cells(heading, self._cells_in_order(condition), key)
        digest = RowsDigest(heading, self._digested, key)
        with _readable():
            for batch in self._cells.rows(self._digested, condition):
                digest.add(batch)
        return digest.text

    def _cells_in_order(self, condition: str = EVERYTHING) -> Iterator[bytes]:
        """Rows, as bytes that do not depend on the order of rows or of declared columns."""
        with _readable():
            yield from self._cells.in_order(self._digested, condition)

    def measure(self, grouping: Grouping) -> CellCounts:
        """Exact counts of the cells of a scope that are not empty.

        Where a scope has few cells each of them is counted, and that once for all groupings.
        """
        sizes = tuple(runs.n_levels for runs in grouping.runs)
        if math.prod(sizes) <= N_CELLS_EACH_MAX:
            grouping = Grouping.of_each(grouping.scope, sizes)
        known = self._counted.get(grouping.content)
        if known is None:
            known = self._count(grouping)
            n_bytes = 8 * known.counts.size * (len(sizes) + 1)
            n_bytes += sum(16 * runs.n_runs for runs in grouping.runs)
            self._counted.put(grouping.content, known, n_bytes=n_bytes)
        return known

    def _count(self, grouping: Grouping) -> CellCounts:
        cells = grouped_cells(grouping, self._column)
        arrays = self._read(grouping.scope, cells, cells.counting_sql)
        for array in arrays:
            array.setflags(write=False)
        return CellCounts(levels=tuple(arrays[:-1]), counts=arrays[-1])

    def measure_units(self, grouping: Grouping) -> UnitCells:
        """The cells of a scope in which each unit has rows; nothing of them is kept."""
        if not self._of_units:
            raise ValueError("units with one row each are counted as rows")
        cells = grouped_cells(grouping, self._column)
        sql = cells.of_units_sql(self._of_units)
        arrays = self._read(grouping.scope, cells, sql, self._of_units)
        return UnitCells(tuple(arrays[:-4]), *arrays[-4:])

    def _read(
        self, scope: Scope, cells: GroupedCells, sql: str, beside: Sequence[str] = ()
    ) -> list[NDArray[np.int64]]:
        """The columns read from some cells: those of a scope, and those in `beside`."""
        columns = [self._column[name] for name in scope]
        with _readable(), self._cells.reading([*columns, *beside]) as cursor:
            for name, table in cells.tables.items():
                cursor.register(name, table)
            found = cursor.sql(sql).to_arrow_table()
        return [column.to_numpy().astype(np.int64) for column in found.columns]


@contextmanager
def _readable() -> Iterator[None]:
    """What goes wrong with the rows is said without a word of them."""
    try:
        yield
    except (duckdb.Error, Damaged, OSError):
        raise SourceUnavailable("The private table could not be read.") from None
