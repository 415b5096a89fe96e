"""Synthetic tables on disk, durable before they are visible, and their names.

    s.09c8....json    the record of the table s of one private table; it names the rows
    6f1d...parquet    its rows
    6f1d...model      the model they were drawn from, as JSON

Before the suffix is a digest of the private table's name, so that a name is unique only among the
tables of one source. Records of earlier versions are stored under the name alone, and are found
there. A table exists once its record does, which is written last and atomically; a crash before
that leaves files without a record, which are removed a day later. Several servers may share a
folder: a record that another server writes is found by the folder's modification time, which is
checked each time. None of the files contains anything private.

Names of synthetic tables: which are free, and which are held for tables being made.

A name is taken within its private table, and a table counts towards the limit of the analyst who
made it. So choosing a name reveals only tables that the caller may know of: a table with the same
name elsewhere does not conflict, and is told apart when it is read (`planner.domain.relations`).
"""

import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from accountant.ledger.stores import durable_file
from cube.refusals import InvalidRequest, NameTaken, StoreUnavailable, TooLarge, UnknownName
from planner.cache import BoundedCache
from planner.sql import CreateSynthetic, is_new_name, shortened
from proxy.api import clean_table
from proxy.config import DEFAULT_LIMITS, SyntheticLimits
from proxy.monitoring import write_log
from proxy.sources.public import is_public_name
from proxy.synthetic_tables.record import Key, SyntheticRecord

RECORD: Final = ".json"
ROWS: Final = ".parquet"
MODEL: Final = ".model"
DRAFT: Final = ".new"
FOLDER_MODE: Final = 0o700
# A change right after a check, in the same tick of the file system's clock, could be missed.
SETTLE_SECONDS: Final = 2.0
ORPHAN_SECONDS: Final = 86_400.0  # no table takes a day to be written
CACHE_BYTES_MAX: Final = 512 * 2**20  # of rows in memory

N_ROWS_OF_GROUP: Final = 2**17  # encoded and decoded at once: more would take memory for nothing

SOURCE_DIGITS: Final = 32

Records: TypeAlias = Mapping[Key, SyntheticRecord]  # in order
Content = TypeVar("Content")
_Signature: TypeAlias = tuple[int, int, int]


class SyntheticStore:
    """The synthetic tables in a folder, which need not exist yet. Thread-safe.

    Parameters
    ----------
    limits : SyntheticLimits
        Limits on the tables of one analyst.
    """

    def __init__(self, folder: Path, limits: SyntheticLimits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self._folder = folder
        self._lock = threading.Lock()
        self._changed: int | None = None
        self._read: dict[str, tuple[_Signature, SyntheticRecord | None]] = {}
        self._records: Records = MappingProxyType({})
        self._rows: BoundedCache[str, pa.Table] = BoundedCache(
            n_entries_max=1000, n_bytes_max=CACHE_BYTES_MAX
        )
        with suppress(OSError, StoreUnavailable):  # the error is reported when a table is read
            self._take_away_orphans()

    def tables(self) -> Records:
        """The records of all tables that exist now.

        Raises
        ------
        StoreUnavailable
        """
        with self._lock:
            try:
                self._look()
            except FileNotFoundError:
                self._records = MappingProxyType({})
            except OSError as error:
                raise _unavailable("read", error) from None
            return self._records

    def rows(self, record: SyntheticRecord) -> pa.Table:
        """The rows of a table.

        Raises
        ------
        UnknownName
            If it was dropped or replaced since its record was read.
        StoreUnavailable
        """
        known = self._rows.get(record.id)
        if known is not None:
            return known

        def read(path: Path) -> pa.Table:
            with pq.ParquetFile(path) as file:
                batches = file.iter_batches(N_ROWS_OF_GROUP, use_threads=False)
                return pa.Table.from_batches(batches, file.schema_arrow).cast(record.schema)

        found = self._opened(record, ROWS, read)
        self._rows.put(record.id, found, n_bytes=found.nbytes)
        return found

    def model(self, record: SyntheticRecord) -> Mapping[str, Any]:
        """The model its rows were drawn from; raises like `rows`."""

        def read(path: Path) -> Mapping[str, Any]:
            found: dict[str, Any] = json.loads(path.read_bytes())
            return found

        return self._opened(record, MODEL, read)

    def check_writable(self) -> None:
        """Raise StoreUnavailable if the folder cannot be written, before anything is paid for."""
        try:
            self._folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
            probe = self._folder / f"{os.getpid()}-{threading.get_ident()}{DRAFT}"
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise _unavailable("written", error) from None

    def publish(
        self,
        record: SyntheticRecord,
        parts: Iterable[pa.Table],
        model: Mapping[str, Any],
        replaces: SyntheticRecord | None = None,
    ) -> SyntheticRecord:
        """Store a table durably.

        Parameters
        ----------
        record : SyntheticRecord
            Its numbers of rows and bytes are set to those of the parts.
        parts : iterable of pyarrow.Table
            The rows. A part is written before the next is asked for.

        Returns
        -------
        The record as it is kept.

        Raises
        ------
        NameTaken
            If another table of its source has its name and is not to be replaced.
        StoreUnavailable
            Then the table does not exist.
        """
        try:
            self._folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
            with _durable(self._folder / f"{record.id}{ROWS}") as path:
                n_rows, n_bytes = _write(path, parts, record.schema)
            record = replace(record, n_rows=n_rows, n_bytes=n_bytes)
            with _durable(self._folder / f"{record.id}{MODEL}") as path:
                path.write_text(json.dumps(model), encoding="utf-8")
            with _durable(self._folder / f"{record.id}{DRAFT}") as path:
                path.write_text(record.to_json(), encoding="utf-8")
            is_named = self._named(record, is_replacing=replaces is not None)
        except (OSError, pa.ArrowException) as error:
            self._remove_files(record.id)
            raise _unavailable("written", error) from None
        except BaseException:  # from the code that draws the rows
            self._remove_files(record.id)
            raise
        if not is_named:
            self._remove_files(record.id)
            raise NameTaken(f"The name {record.name} is taken.", hint="Choose another.")
        if replaces is not None:
            self._remove_files(replaces.id)
        return record

    def drop(self, record: SyntheticRecord) -> None:
        """Remove a table for good; no error if it is gone already.

        Raises
        ------
        StoreUnavailable
        """
        first, path = self._folder / _first_name(record), self._folder / _file_name(record)
        try:
            is_own = _is(_found(path), record)
            if is_own:
                path.unlink(missing_ok=True)
            # An earlier record that this one replaced must not become visible again.
            earlier = _found(first)
            if _is(earlier, record) or (is_own and _has_key(earlier, record)):
                first.unlink(missing_ok=True)
            if self._folder.exists():
                durable_file.sync_folder(self._folder)
        except OSError as error:
            raise _unavailable("written", error) from None
        self._remove_files(record.id)

    def _named(self, record: SyntheticRecord, *, is_replacing: bool) -> bool:
        """Publish the record under its name; False if the name is taken."""
        draft, path = self._folder / f"{record.id}{DRAFT}", self._folder / _file_name(record)
        first = self._folder / _first_name(record)
        is_first = _has_key(_found(first), record)
        if is_replacing:
            draft.replace(path)
            if is_first:
                first.unlink(missing_ok=True)
        else:
            if is_first:
                return False
            try:
                os.link(draft, path)
            except FileExistsError:
                return False
            draft.unlink()
        durable_file.sync_folder(self._folder)
        return True

    def _remove_files(self, of_id: str) -> None:
        for suffix in (ROWS, MODEL, DRAFT):
            with suppress(OSError):
                (self._folder / f"{of_id}{suffix}").unlink()

    def _opened(
        self, record: SyntheticRecord, suffix: str, read: Callable[[Path], Content]
    ) -> Content:
        try:
            return read(self._folder / f"{record.id}{suffix}")
        except FileNotFoundError:
            raise UnknownName(
                f"The table {record.name} has changed.",
                hint="It was dropped or replaced just now; try again.",
            ) from None
        except (OSError, ValueError, pa.ArrowException) as error:
            raise _unavailable("read", error) from None

    def _look(self) -> None:
        """Read what has changed since the last check."""
        now = time.time_ns()
        changed = self._folder.stat().st_mtime_ns
        if changed == self._changed:
            return
        read: dict[str, tuple[_Signature, SyntheticRecord | None]] = {}
        for path in sorted(self._folder.iterdir()):
            if path.suffix != RECORD:
                continue
            with suppress(FileNotFoundError):  # dropped meanwhile
                found = path.stat()
                signature = (found.st_ino, found.st_mtime_ns, found.st_size)
                known = self._read.get(path.stem)
                read[path.stem] = (
                    known
                    if known is not None and known[0] == signature
                    else (signature, _read_record(path))
                )
        if read != self._read:
            records = [record for _, record in read.values() if record is not None]
            # Files are sorted, so that of two with the same key the newer form, "s.09c8.json", is
            # first.
            by_key = {record.key: record for record in reversed(records)}
            in_order = sorted(by_key, key=lambda key: (key[1], key[0]))
            self._records = MappingProxyType({key: by_key[key] for key in in_order})
        self._read = read
        self._changed = changed if now - changed > SETTLE_SECONDS * 1e9 else None

    def _take_away_orphans(self) -> None:
        """Remove old files that no record names."""
        named = {record.id for record in self.tables().values()}
        long_ago = time.time() - ORPHAN_SECONDS
        for path in self._folder.iterdir():
            is_orphan = path.suffix in {ROWS, MODEL, DRAFT} and path.stem not in named
            if is_orphan and path.stat().st_mtime < long_ago:
                path.unlink(missing_ok=True)


def _read_record(path: Path) -> SyntheticRecord | None:
    """The record in a file; None, and a line in the log, if it is not one."""
    try:
        record = SyntheticRecord.from_json(path.read_text(encoding="utf-8"))
    except ValueError:
        write_log(logging.WARNING, "synthetic_table_unreadable")
        return None
    return record if path.name in {_file_name(record), _first_name(record)} else None


def _found(path: Path) -> SyntheticRecord | None:
    """The record at a path, if there is one."""
    try:
        return SyntheticRecord.from_json(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def _is(found: SyntheticRecord | None, record: SyntheticRecord) -> bool:
    return found is not None and found.id == record.id


def _has_key(found: SyntheticRecord | None, record: SyntheticRecord) -> bool:
    return found is not None and found.key == record.key


def _file_name(record: SyntheticRecord) -> str:
    """The file name of a record; a table's name has no dot."""
    source = hashlib.sha256(record.table.encode()).hexdigest()[:SOURCE_DIGITS]
    return f"{record.name.lower()}.{source}{RECORD}"


def _first_name(record: SyntheticRecord) -> str:
    """The file name of a record from the time when names were unique over all sources."""
    return f"{record.name.lower()}{RECORD}"


@contextmanager
def _durable(path: Path) -> Iterator[Path]:
    """A file that is durably on disk once the block is left."""
    yield path
    with path.open("rb") as file:
        durable_file.sync(file.fileno())


def _write(path: Path, parts: Iterable[pa.Table], schema: pa.Schema) -> tuple[int, int]:
    """Write the parts to a file; the rows in them, and the bytes they take in memory."""
    n_rows = n_bytes = 0
    with pq.ParquetWriter(path, schema) as writer:
        for part in parts:
            rows = clean_table(part.cast(schema))
            writer.write_table(rows, row_group_size=N_ROWS_OF_GROUP)
            n_rows, n_bytes = n_rows + rows.num_rows, n_bytes + rows.nbytes
            del part, rows
            pa.default_memory_pool().release_unused()  # for what is drawn next
    return n_rows, n_bytes


def _unavailable(verb: str, error: Exception) -> StoreUnavailable:
    why = "" if not isinstance(error, OSError) or error.strerror is None else f": {error.strerror}"
    return StoreUnavailable(
        f"Synthetic tables cannot be {verb} at present{why}.",
        hint="The server's owner should check its synthetic_dir.",
    )


N_OWN_NAMES_TRIED: Final = 1000

CheckMayChange: TypeAlias = Callable[[SyntheticRecord], None]


@dataclass(frozen=True, slots=True)
class NamingContext:
    """The maker of a new table, its source, and the names that the maker may know of.

    Parameters
    ----------
    declared : frozenset of str
        The private and public tables that the maker may know of, in lower case.
    """

    analyst: str
    source: str
    declared: frozenset[str]


class Names:
    """The names that are held for tables being made on one server. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._making: dict[Key, str] = {}  # to the analyst who makes the table

    @contextmanager
    def held(
        self,
        order: CreateSynthetic,
        maker: NamingContext,
        there: Records,
        check: CheckMayChange,
        n_tables_max: int,
    ) -> Iterator[tuple[str, SyntheticRecord | None]]:
        """Hold a name for a new table; yields it, and the table that it replaces, if any.

        Parameters
        ----------
        order : CreateSynthetic
            If it gives no name, a free one is chosen.
        there : mapping
            The existing synthetic tables.
        check : callable
            Raises unless the maker may replace the given table of the same source.
        n_tables_max : int
            How many tables one analyst may have of one private table.

        Raises
        ------
        NameTaken, InvalidRequest, TooLarge
        """
        with self._lock:
            name = order.name or self._free(maker, there)
            key = (maker.source, name.lower())
            replaced = self._replaced(name, maker, there, is_replacing=order.is_replacing)
            if replaced is not None:
                check(replaced)
            is_more = replaced is None or replaced.made_by != maker.analyst
            if is_more and self._n_places(maker, there) >= n_tables_max:
                raise TooLarge(
                    f"You have {n_tables_max} synthetic tables of {maker.source}, the most "
                    "allowed.",
                    hint="Drop one that is no longer needed, or replace it.",
                )
            self._making[key] = maker.analyst
        try:
            yield name, replaced
        finally:
            with self._lock:
                self._making.pop(key, None)

    def _n_places(self, maker: NamingContext, there: Records) -> int:
        """How many tables of the source the maker has, including those being made."""
        own = (maker.source, maker.analyst)
        n_made = sum((one.table, one.made_by) == own for one in there.values())
        return n_made + sum((key[0], by) == own for key, by in self._making.items())

    def _replaced(
        self,
        name: str,
        maker: NamingContext,
        there: Records,
        *,
        is_replacing: bool,
    ) -> SyntheticRecord | None:
        """The table to be replaced by one of this name; NameTaken if the name is not available."""
        if not is_new_name(name) or not is_public_name(name):
            raise InvalidRequest(
                f"{shortened(name)!a} cannot be the name of a synthetic table.",
                hint="Use letters, digits and _, not starting with a digit, and not an SQL "
                "keyword.",
            )
        key = (maker.source, name.lower())
        record = there.get(key)
        is_free = record is None or is_replacing
        of_source = f"{maker.source}.{name}".casefold()  # which is the table of its units, or none
        is_declared = not maker.declared.isdisjoint({name.casefold(), of_source})
        if not is_free or key in self._making or is_declared:
            raise NameTaken(f"The name {name} is taken.", hint="Choose another.")
        return record

    def _free(self, maker: NamingContext, there: Records) -> str:
        """A free name for a table without one."""
        stem = maker.source if is_new_name(maker.source) else "synthetic"
        for number in range(1, N_OWN_NAMES_TRIED):
            name = f"{stem}_{number}"
            key = (maker.source, name.lower())
            is_known = key in there or key in self._making
            if not is_known and name.casefold() not in maker.declared:
                return name
        raise TooLarge("No name is free.", hint="Name the table.")
