"""The location of a private table: files, a database's table, the owner's SQL, or units of these.

A table of a database is in PostgreSQL, or behind Spark Connect; a federated table is at its
holders. Values; nothing here opens anything. The files of a pattern are listed whenever they are
asked for.
"""

import os
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import quote

from accountant.ledger.stores import DEFAULT_SCHEMA, PostgresLocation
from cube.axis import NAME_LENGTH_MAX
from cube.holders import N_HOLDERS_MAX
from cube.refusals import ConfigurationInvalid
from proxy.shared.address import host_of, is_loopback
from proxy.sources.text_format import (
    COMPRESSIONS,
    NOT_COMPRESSED,
    TextFormat,
    compression_of,
    inner_suffix,
    unknown_kind,
)

SCHEME: Final = "sc://"
TOKEN_VARIABLE: Final = "TACIT_SPARK_TOKEN"  # noqa: S105 - a name, no token
N_PARTS_MAX: Final = 3
ADDRESS: Final = re.compile(r"([A-Za-z0-9_.-]+|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?", re.ASCII)
LOCAL: Final = ("localhost", "127.", "[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkTable:
    """A table or a view behind Spark Connect.

    Parameters
    ----------
    address : str
        ``HOST:PORT``.
    parts : tuple of str
        Its name: at most a catalog, a schema, and the table.
    version : int, optional
        The version of a Delta table, or the snapshot of an Iceberg table.
    immutable : bool
        Whether its owner says that it never changes; a table without a version needs that.
    token_file : Path, optional
        A file with the token; otherwise the environment may have it.
    tls : bool
        Whether the connection is encrypted. A token goes over no other.
    """

    address: str
    parts: tuple[str, ...]
    version: int | None = None
    immutable: bool = False
    token_file: Path | None = None
    tls: bool = True

    def __post_init__(self) -> None:
        if not ADDRESS.fullmatch(self.address):
            raise ValueError("should be sc://HOST:PORT, without a token or other parameters")
        if not 1 <= len(self.parts) <= N_PARTS_MAX or not all(self.parts):
            raise ValueError("needs source_table, as TABLE, SCHEMA.TABLE or CATALOG.SCHEMA.TABLE")
        if (self.version is None) is not self.immutable:
            raise ValueError("needs either a version, or immutable = true if it never changes")
        if self.version is not None and self.version < 0:
            raise ValueError("has versions from 0")
        if not self.tls and not self.address.startswith(LOCAL):
            raise ValueError(
                "is on another machine, so counts of rows may be sent there only by TLS"
            )

    @property
    def files(self) -> tuple[Path, ...]:
        """No file is read."""
        return ()

    @property
    def places(self) -> tuple[str, ...]:
        """What its rows are in."""
        return (f"{SCHEME}{self.address}/{'.'.join(self.parts)}",)

    @property
    def where(self) -> tuple[str, ...]:
        """What tells this place from others, whatever is there now."""
        return self.places

    @property
    def label(self) -> str:
        """The name for it in messages."""
        at = "" if self.version is None else f" at version {self.version}"
        return f"{'.'.join(self.parts)}{at} in Spark"

    def remote(self) -> str:
        """What the client connects to, with the token: a secret.

        Raises
        ------
        ConfigurationInvalid
            If the file of the token cannot be read.
        """
        token = os.environ.get(TOKEN_VARIABLE, "")
        if self.token_file is not None:
            try:
                token = self.token_file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeError):
                raise ConfigurationInvalid(
                    f"The token file {self.token_file} cannot be read.",
                    hint="It should hold the token as one line of text.",
                ) from None
        given = [f"use_ssl={str(self.tls).lower()}"]
        if token:
            if not self.tls:
                raise ConfigurationInvalid(
                    f"{self.label} is reached without TLS, so others could read the token.",
                    hint="Remove `tls = false`, or remove the token.",
                )
            given.append(f"token={quote(token, safe='')}")
        return f"{SCHEME}{self.address}/;{';'.join(given)}"


HIDDEN: Final = (".", "_")  # how the names of other tools' own files begin


class Extract(StrEnum):
    """Where the rows of a table are kept once they are read, as positions of levels.

    Notes
    -----
    With ``none`` they are not: they are counted in the database that has them.
    """

    MEMORY = "memory"
    FILE = "file"
    NONE = "none"


class SourceKind(StrEnum):
    """The formats a source can be read from."""

    CSV = "csv"
    PARQUET = "parquet"
    DUCKDB = "duckdb"


KIND_BY_SUFFIX: Final = {
    ".csv": SourceKind.CSV,
    ".tsv": SourceKind.CSV,
    ".parquet": SourceKind.PARQUET,
    ".duckdb": SourceKind.DUCKDB,
}
KNOWN: Final = ".csv, .tsv, .parquet or .duckdb"
OF_TEXT: Final = tuple(
    f"{suffix}{compressed}"
    for suffix, kind in KIND_BY_SUFFIX.items()
    if kind is SourceKind.CSV
    for compressed in ("", *COMPRESSIONS)
)


def kind_of(path: Path) -> SourceKind | None:
    """The format that a file's name says; None if it says none that can be read.

    >>> kind_of(Path("people.CSV.gz")), kind_of(Path("people.parquet.gz"))
    (<SourceKind.CSV: 'csv'>, None)
    """
    found = KIND_BY_SUFFIX.get(inner_suffix(path))
    is_compressed = compression_of(path) != NOT_COMPRESSED
    return None if is_compressed and found is not SourceKind.CSV else found


def default_format(path: Path) -> TextFormat:
    """The form of text that the name of a file says."""
    return TextFormat(delimiter="\t") if inner_suffix(path) == ".tsv" else TextFormat()


def _check_text(kind: SourceKind, text: TextFormat | None) -> None:
    if text is not None and kind is not SourceKind.CSV:
        raise ValueError("delimiter, decimal, encoding and header go with a file of text")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLocation:
    """The file of a private table.

    Parameters
    ----------
    path : Path
        A `.csv`, `.tsv`, `.parquet` or `.duckdb` file; the suffix decides how it is read. Text may
        be compressed, as `.csv.gz` or `.csv.zst`.
    source_table : str, optional
        The table inside a `.duckdb` file, required there and meaningless elsewhere.
    text : TextFormat, optional
        How text is written; by default as the name says.
    """

    path: Path
    source_table: str | None = None
    text: TextFormat | None = None

    def __post_init__(self) -> None:
        if kind_of(self.path) is None:
            raise ValueError(unknown_kind(self.path, KNOWN))
        if (self.kind is SourceKind.DUCKDB) != (self.source_table is not None):
            raise ValueError("source_table goes with a .duckdb file, and only with one")
        _check_text(self.kind, self.text)

    @property
    def kind(self) -> SourceKind:
        """The file's format."""
        return kind_of(self.path) or SourceKind.CSV

    @property
    def text_format(self) -> TextFormat:
        """How its text is written."""
        return self.text or default_format(self.path)

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that is read."""
        return (self.path,)

    @property
    def places(self) -> tuple[str, ...]:
        """What its rows are in: two tables with a place in common may be about the same rows."""
        return (str(self.path.resolve()),)

    @property
    def where(self) -> tuple[str, ...]:
        """What tells this place from others, whatever is there now."""
        return self.places

    @property
    def label(self) -> str:
        """The name for it in messages."""
        return str(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFiles:
    """Files of one kind, and with the same columns, that are one private table together.

    Parameters
    ----------
    pattern : str
        Which files of the folder, as ``Path.glob`` takes it; it ends as the name of a file of text
        or of Parquet does. Files and folders whose names begin with a dot or an underscore are left
        out.
    text : TextFormat, optional
        How text is written; by default as the pattern's end says.
    """

    folder: Path
    pattern: str
    text: TextFormat | None = None

    def __post_init__(self) -> None:
        if kind_of(Path(self.pattern)) not in {SourceKind.CSV, SourceKind.PARQUET}:
            raise ValueError(f"a pattern must end in .parquet, {' or '.join(OF_TEXT)}")
        _check_text(self.kind, self.text)
        if Path(self.pattern).is_absolute() or ".." in Path(self.pattern).parts:
            raise ValueError("a pattern matches files in one folder only")

    @property
    def kind(self) -> SourceKind:
        """The format of all of them."""
        return kind_of(Path(self.pattern)) or SourceKind.CSV

    @property
    def text_format(self) -> TextFormat:
        """How the text of each is written."""
        return self.text or default_format(Path(self.pattern))

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that is there now, in the order of their names."""
        return tuple(self.folder / name for name in self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the files, from the folder on."""
        found = (path.relative_to(self.folder) for path in self.folder.glob(self.pattern))
        return tuple(
            sorted(
                name.as_posix()
                for name in found
                if not any(part.startswith(HIDDEN) for part in name.parts)
            )
        )

    @property
    def places(self) -> tuple[str, ...]:
        """What its rows are in."""
        return tuple(str(path.resolve()) for path in self.files)

    @property
    def where(self) -> tuple[str, ...]:
        """What tells this place from others, whatever is there now."""
        return (str(self.folder.resolve() / self.pattern),)

    @property
    def label(self) -> str:
        """The name for it in messages."""
        return str(self.folder / self.pattern)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresRows:
    """A table in PostgreSQL, or what the owner's SELECT gives there.

    Parameters
    ----------
    server : PostgresLocation
        The database, and how it is reached; without a password.
    table : str, optional
        A table or a view, as SQL names it: ``orders``, ``sales.orders``, ``sales."Orders"``.
    query : str, optional
        One SELECT in PostgreSQL's SQL; either this or `table`.
    password_file : Path, optional
        A file whose one line is the password; by default libpq looks for one, in PGPASSWORD and in
        its password file.
    immutable : bool
        Whether the owner says that its rows never change.
    """

    server: PostgresLocation
    table: str | None = None
    query: str | None = None
    password_file: Path | None = None
    immutable: bool = False

    def __post_init__(self) -> None:
        if (self.table is None) == (self.query is None):
            raise ValueError("rows of PostgreSQL need either source_table or source_query")
        if not (self.table or self.query or "").strip():
            raise ValueError("a table has a name, and a query a text")
        if self.server.schema != DEFAULT_SCHEMA:
            raise ValueError("has a schema; source_table names it, as in source_table = 'a.b'")

    @property
    def files(self) -> tuple[Path, ...]:
        """No file is read."""
        return ()

    @property
    def places(self) -> tuple[str, ...]:
        """The whole database: a query may read any of its tables."""
        return (self.server.name,)

    @property
    def what(self) -> str:
        """The table or the query, as text: it distinguishes sources in one database."""
        return f"table {self.table}" if self.query is None else f"query {self.query.strip()}"

    @property
    def where(self) -> tuple[str, ...]:
        """What tells this place from others, whatever is there now."""
        return (self.server.name, self.what)

    @property
    def label(self) -> str:
        """The name for it in messages: without the user, the options, and the text of a query."""
        return f"{self.server.name} ({'source_query' if self.table is None else self.table})"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateView:
    """A private table that the owner's SQL computes from files, one row for each privacy unit.

    Parameters
    ----------
    sql : str
        One SELECT in DuckDB's SQL.
    sources : tuple of (str, SourceLocation or SourceFiles)
        The tables that it may select from: the name of each in the SQL, and its location.
    """

    sql: str
    sources: tuple[tuple[str, SourceLocation | SourceFiles], ...]

    def __post_init__(self) -> None:
        if not self.sql.strip():
            raise ValueError("a view must be a SELECT")
        if not self.sources:
            raise ValueError("a view needs at least one source")
        names = [name for name, _location in self.sources]
        if not all(0 < len(name) <= NAME_LENGTH_MAX and name.isprintable() for name in names):
            raise ValueError(
                f"the name of a source has 1 to {NAME_LENGTH_MAX} printable characters"
            )
        if len({name.casefold() for name in names}) != len(names):
            raise ValueError("two sources share a name (letter case does not count)")
        read_as: dict[Path, TextFormat] = {}
        for _name, location in self.sources:
            for path in location.files:
                if read_as.setdefault(path, location.text_format) != location.text_format:
                    raise ValueError(f"two sources read {path.name} in different ways")

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that is read."""
        return tuple(
            dict.fromkeys(path for _name, location in self.sources for path in location.files)
        )

    @property
    def places(self) -> tuple[str, ...]:
        """What its rows are in."""
        return tuple(
            dict.fromkeys(place for _name, location in self.sources for place in location.places)
        )

    @property
    def where(self) -> tuple[str, ...]:
        """What tells this place from others, whatever is there now; the SQL is not among it."""
        return tuple(sorted({one for _name, location in self.sources for one in location.where}))

    @property
    def label(self) -> str:
        """The name for it in messages."""
        labels = dict.fromkeys(location.label for _name, location in self.sources)
        return f"The view of {', '.join(labels)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRows:
    """One row for each unit that the rows of another table are about, bounded or not.

    Parameters
    ----------
    of : SourceLocation, SourceFiles, PostgresRows or PrivateView
        Where those rows are.
    """

    of: "RowsLocation"

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that is read."""
        return self.of.files

    @property
    def places(self) -> tuple[str, ...]:
        """What its rows are in."""
        return self.of.places

    @property
    def where(self) -> tuple[str, ...]:
        """What tells this place from others, whatever is there now."""
        return self.of.where

    @property
    def label(self) -> str:
        """The name for it in messages."""
        return self.of.label


TIMEOUT_OF_HOLDERS: Final = 60.0
TIMEOUT_OF_HOLDERS_MAX: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderPlace:
    """One holder of a federated table: a server of Tacit with a table of its own.

    Parameters
    ----------
    name : str
        A level of the federated table's axis of holders.
    address : str
        ``HOST:PORT``.
    table : str
        The name of the table there.
    token_file : Path, optional
        A file with a token of the role `federation`.
    ca_file : Path, optional
        The authorities that may have signed the holder's certificate; by default those of the
        system. Another machine is reached by TLS alone.
    cert_file, key_file : Path, optional
        A certificate to show instead of a token.
    timeout : float
        How long one call may take, in seconds.
    """

    name: str
    address: str
    table: str
    token_file: Path | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    timeout: float = TIMEOUT_OF_HOLDERS

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > NAME_LENGTH_MAX or not self.name.isprintable():
            raise ValueError(f"needs a name of 1 to {NAME_LENGTH_MAX} printable characters")
        if host_of(self.address) is None:
            raise ValueError("needs an address, as HOST:PORT")
        if not self.table:
            raise ValueError("needs the name of its table")
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("needs cert_file and key_file together")
        if self.token_file is None and self.cert_file is None:
            raise ValueError("needs a token_file, or cert_file and key_file")
        if not 0 < self.timeout <= TIMEOUT_OF_HOLDERS_MAX:
            raise ValueError(f"has a timeout of at most {TIMEOUT_OF_HOLDERS_MAX:g} seconds")

    @property
    def by_tls(self) -> bool:
        """Whether the connection is encrypted: always, but to this machine if nothing is said."""
        given = (self.ca_file, self.cert_file)
        return any(one is not None for one in given) or not is_loopback(host_of(self.address) or "")

    @property
    def secret_files(self) -> tuple[Path, ...]:
        """The files that say who calls, and whom."""
        every = (self.token_file, self.ca_file, self.cert_file, self.key_file)
        return tuple(one for one in every if one is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldTable:
    """A federated table: its rows are those of several holders, who measure them themselves.

    Parameters
    ----------
    holders : tuple of HolderPlace
        In the order of the levels of the table's axis of holders.
    """

    holders: tuple[HolderPlace, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.holders) <= N_HOLDERS_MAX:
            raise ValueError(f"should be a list of 1 to {N_HOLDERS_MAX} holders")
        names = {one.name.casefold() for one in self.holders}
        if len(names) < len(self.holders):
            raise ValueError("two holders share a name (letter case does not count)")
        if len({(one.address, one.table) for one in self.holders}) < len(self.holders):
            raise ValueError("two holders are the same table at the same address")

    @property
    def files(self) -> tuple[Path, ...]:
        """No file of rows is read."""
        return ()

    @property
    def places(self) -> tuple[str, ...]:
        """What its rows are in."""
        return tuple(f"{one.address}/{one.table}" for one in self.holders)

    @property
    def where(self) -> tuple[str, ...]:
        """What tells this place from others, whatever is there now."""
        return self.places

    @property
    def label(self) -> str:
        """The name for it in messages."""
        return f"holders {', '.join(one.name for one in self.holders)}"


RowsLocation: TypeAlias = SourceLocation | SourceFiles | PostgresRows | PrivateView
Location: TypeAlias = RowsLocation | UnitRows
TableLocation: TypeAlias = Location | SparkTable | HeldTable
