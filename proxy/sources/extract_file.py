"""The file of one table's encoded rows: made whole or not at all, and opened if it is what it says.

It is written under a temporary name and renamed when it is complete. Its last chunk says what it
is of: the table, its declaration, the states of the files that it was read from, and the keyed
digests of the data and of its rows, so that neither has to be read again to know them. Anything
wrong with it, or said otherwise, means that the data is read anew; rows are never taken for others.
Proof: accountant/proofs/refinement.md, "The same data".
"""

import fcntl
import hashlib
import json
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeAlias

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from accountant.ledger.stores import durable_file
from cube.encoding import canonical_json
from cube.refusals import ConfigurationInvalid, SourceUnavailable
from cube.schema import Schema
from proxy.sources import files
from proxy.sources.bounding import RowsRead
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.extract import CellsOnDisk, Chunks, Damaged, write_all
from proxy.sources.location import Location, PrivateView, UnitRows
from proxy.sources.reading import States, kept_schema, read_into, until_read
from proxy.sources.rows_digest import DigestKind, RowsDigest, digested_columns, heading_of

VERSION: Final = 1  # of the encoding of rows and of the file; another one is read anew
MAGIC: Final = b"tacit extract 1\n"
SALT_BYTES: Final = 32
START: Final = len(MAGIC) + SALT_BYTES
SUFFIX: Final = ".extract"
# A file that was written less than this before it was read may be written again without a trace.
SETTLED_NS: Final = 2 * 10**9


class WhyMade(StrEnum):
    """Why an extract was made: which of two things differed, without their contents."""

    ABSENT = "absent"  # there was none
    DAMAGED = "damaged"  # it is not what was written under this key
    DECLARATION = "declaration"  # it is of other columns, levels or places
    FILES = "files"  # these were written since, or just before it was made
    ROWS = "rows"  # the ledger has come to others
    ASKED = "asked"  # the data is read anew whatever is there


Digests: TypeAlias = dict[tuple[bytes, DigestKind], str]  # by the key, and how it is made
Told: TypeAlias = Callable[[str, WhyMade], None]  # of a table, that its extract was made


def untold(table: str, why: WhyMade) -> None:
    """No one is told."""


class _Unlike(Exception):
    """The extract that is there is not the one that it has to be."""

    def __init__(self, why: WhyMade) -> None:
        super().__init__(why.value)
        self.why = why


@dataclass(frozen=True, slots=True)
class ExtractPlace:
    """Where the extract of a table is kept, and how it is read.

    Parameters
    ----------
    folder : Path
        Made, for this user alone, if it is not there; its parent is.
    key : bytes
        The ledger's key.
    told : callable
        Is told which table's extract was made, and why.
    """

    folder: Path
    key: bytes
    told: Told = untold

    def path(self, table: str) -> Path:
        """The file of a table."""
        return self.folder / f"{hashlib.sha256(table.encode()).hexdigest()[:32]}{SUFFIX}"


class ExtractedSource(DuckDbSource):
    """A private table whose rows are in an extract, which knows their digests.

    Parameters
    ----------
    states : mapping of Path to FileState
        Of the files that it was read from.
    known : (dict, dict)
        The digests of the data and of the rows that are known, each by its key and by how it is
        made.
    """

    def __init__(
        self,
        schema: Schema,
        location: Location,
        cells: CellsOnDisk,
        states: States,
        known: tuple[Digests, Digests],
    ) -> None:
        super().__init__(schema, location, read_before=(cells, states))
        self._of_data, of_rows = known
        self._of_rows.update(of_rows)

    def fingerprint(self, key: bytes, like: str = "") -> str:
        """The identity of the data, for holders of the key: HMAC-SHA256 in hexadecimal."""
        made = key, DigestKind.of(like)
        if made not in self._of_data:
            self._of_data[made] = super().fingerprint(key, like)
        return self._of_data[made]


def open_extract(
    place: ExtractPlace,
    schema: Schema,
    location: Location,
    read: RowsRead,
    known_rows: str = "",
) -> ExtractedSource:
    """The rows in the extract of a table; it is made if there is none that is what it has to be.

    Parameters
    ----------
    known_rows : str
        The digest of the rows that the table has to have; an extract of others is made anew. Empty
        if no ledger says so yet.

    Raises
    ------
    ConfigurationInvalid, DataChanged
        If the data cannot be read.
    """
    with _locked(place, schema.table):
        try:
            return _opened(place, schema, location, read, known_rows)
        except FileNotFoundError:
            why = WhyMade.ABSENT
        except (Damaged, OSError, SourceUnavailable):
            why = WhyMade.DAMAGED
        except _Unlike as unlike:
            why = unlike.why
        return _made(place, schema, location, read, known_rows, why)


def make_extract(  # noqa: PLR0913 - as `open_extract`
    place: ExtractPlace,
    schema: Schema,
    location: Location,
    read: RowsRead,
    known_rows: str = "",
    *,
    is_kept: bool,
) -> ExtractedSource:
    """The rows as they are now, in a new extract, which replaces the one there is if it is kept."""
    if not is_kept:
        _make_folder(place.folder)
        return until_read(lambda: _written(place, schema, location, read, known_rows, None))
    with _locked(place, schema.table):
        return _made(place, schema, location, read, known_rows, WhyMade.ASKED)


def _made(  # noqa: PLR0913, PLR0917 - as `open_extract`
    place: ExtractPlace,
    schema: Schema,
    location: Location,
    read: RowsRead,
    known_rows: str,
    why: WhyMade,
) -> ExtractedSource:
    """A new extract under the table's name."""
    path = place.path(schema.table)
    part = path.with_suffix(".part")  # of this process: it has the lock
    try:
        found = until_read(lambda: _written(place, schema, location, read, known_rows, part))
        part.rename(path)
        durable_file.sync_folder(place.folder)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    place.told(schema.table, why)
    return found


def _written(  # noqa: PLR0913, PLR0917 - as `open_extract`
    place: ExtractPlace,
    schema: Schema,
    location: Location,
    read: RowsRead,
    known_rows: str,
    part: Path | None,
) -> ExtractedSource:
    """A new extract in a file, or in one without a name."""
    began = time.time_ns()
    file = _new_file(place.folder, part)
    salt = secrets.token_bytes(SALT_BYTES)
    chunks = Chunks(file, _key(place, salt), START)
    try:
        write_all(file, MAGIC + salt, 0)
        digest = RowsDigest(heading_of(schema), digested_columns(schema), place.key)
        cells = CellsOnDisk(chunks, place.folder, kept_schema(schema), passing=digest.passing)
        states = read_into(cells, schema, location, read)
        known = {(place.key, DigestKind.SUMS): digest.text}
        found = ExtractedSource(schema, location, cells, states, ({}, known))
        # Those that a restart will be asked for.
        digests = {
            DigestKind.of(like).name: (
                found.fingerprint(place.key, like),
                found.rows_fingerprint(place.key, like),
            )
            for like in ("", known_rows)
        }
        is_settled = all(began - state.changed_ns > SETTLED_NS for state in states.values())
        header = {
            "declared": _declared(schema, location, read),
            "states": _as_json(states) if is_settled else None,
            "digests": digests,
            "groups": cells.groups,
            "highest": cells.highest,
            "places": chunks.places,
        }
        chunks.append_last(json.dumps(header).encode())
    except OSError:
        chunks.close()
        raise ConfigurationInvalid(
            f"The extract of {schema.table} cannot be written to {place.folder}.",
            hint=(
                "Is there free space? The folder is the table's extract_dir, or is beside the "
                "ledger."
            ),
        ) from None
    except BaseException:
        chunks.close()
        raise
    return found


def _opened(
    place: ExtractPlace, schema: Schema, location: Location, read: RowsRead, known_rows: str
) -> ExtractedSource:
    """The extract that is there; _Unlike, Damaged or OSError if it is not what it has to be."""
    file = os.open(place.path(schema.table), os.O_RDONLY | os.O_CLOEXEC)
    begins = os.pread(file, START, 0)
    chunks = Chunks(file, _key(place, begins[len(MAGIC) :]), START)
    if not begins.startswith(MAGIC):
        raise Damaged
    header: dict[str, Any] = json.loads(chunks.read_last())
    states = files.states_of(location.files)
    if header["declared"] != _declared(schema, location, read):
        raise _Unlike(WhyMade.DECLARATION)
    if header["states"] != _as_json(states):
        raise _Unlike(WhyMade.FILES)
    chunks.places = [tuple(one) for one in header["places"]]
    cells = CellsOnDisk(
        chunks, place.folder, kept_schema(schema), header["groups"], header["highest"]
    )
    known: tuple[Digests, Digests] = {}, {}
    for name, both in _digests(header).items():
        for of, digest in zip(known, both, strict=True):
            of[place.key, DigestKind[name]] = digest
    found = ExtractedSource(schema, location, cells, states, known)
    if known_rows and found.rows_fingerprint(place.key, known_rows) != known_rows:
        raise _Unlike(WhyMade.ROWS)
    return found


def _digests(header: Mapping[str, Any]) -> Mapping[str, Any]:
    """The digests of the data and of the rows, by how they are made.

    A file of an earlier release has one of each, and may hold rows that were deleted since.
    """
    earlier = {DigestKind.CELLS.name: (header.get("data"), header.get("rows"))}
    found: Mapping[str, Any] = header.get("digests", earlier)
    return found


def _declared(schema: Schema, location: Location, read: RowsRead) -> str:
    """A digest of everything that decides which rows are read, and as which positions."""
    where = location.of if isinstance(location, UnitRows) else location
    sql = where.sql if isinstance(where, PrivateView) else ""
    sources = [repr(one) for one in where.sources] if isinstance(where, PrivateView) else []
    table = getattr(where, "source_table", None)
    text = canonical_json(
        [
            *(VERSION, ascii(schema), type(location).__name__, list(where.where)),
            *(table, sql, sources, read.n_readable),
        ]
    )
    return hashlib.sha256(text.encode()).hexdigest()


def _as_json(states: States) -> list[dict[str, Any]]:
    """The states of files as they are after they were written to a header, and read again."""
    every = [{**asdict(state), "path": str(state.path)} for state in states.values()]
    found: list[dict[str, Any]] = json.loads(json.dumps(every))
    return found


def _key(place: ExtractPlace, salt: bytes) -> bytes:
    """The key of one file alone, since its salt was drawn for it."""
    made: bytes = HKDF(SHA256(), 32, salt, MAGIC).derive(place.key)
    return made


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        raise ConfigurationInvalid(f"The folder {folder} cannot be created.") from None


@contextmanager
def _locked(place: ExtractPlace, table: str) -> Iterator[None]:
    """Others that make or open this extract wait: of several servers, one makes it for all."""
    _make_folder(place.folder)
    path = place.path(table).with_suffix(".lock")
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        raise ConfigurationInvalid(f"{path} cannot be written.") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _new_file(folder: Path, part: Path | None) -> int:
    """An empty file for this user alone, open for reading and writing."""
    try:
        if part is None:
            with tempfile.TemporaryFile(dir=folder) as file:
                return os.dup(file.fileno())
        with suppress(FileNotFoundError):
            part.unlink()  # left by a process that was killed
        return os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        raise ConfigurationInvalid(f"No file can be created in {folder}.") from None
