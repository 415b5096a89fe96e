"""`tacit init`: a first configuration file, from the names and types of columns.

A draft leaves everything that must be public knowledge for the owner of the data to fill in.
Reading levels from the rows is optional, and is not private: what it finds becomes public.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

from cube.axis import NAME_LENGTH_MAX
from cube.refusals import ConfigurationInvalid
from planner.sql.messages import listed
from proxy.cli.init_levels import N_LEVELS_LISTED_MAX, Seen, found_kind, found_levels
from proxy.cli.init_source import Drafted, Tell, Wanted, look_at
from proxy.cli.init_text import NOTHING_TOLD, ToldFormat
from proxy.cli.init_toml import toml_key, toml_string
from proxy.cli.init_unit import (
    NamedColumn,
    RowsOfUnits,
    is_servable_name,
    names_money,
    propose,
    unit_lines,
)
from proxy.sources.axis_sql import INTEGERS, MOMENTS, REALS, ZONED
from proxy.sources.location import PostgresRows, SourceKind, SourceLocation, default_format
from proxy.sources.text_format import TextFormat

PLACEHOLDERS = {
    "category": (
        'levels = ["...", "..."]',
        'levels_from = "cities.csv:city"  # or this: a public file',
    ),
    "integer": ("low = ...", "high = ..."),
    "boolean": (),
    "measure": (
        "low = ...            # bounds decide the noise; they come from knowledge, not from rows",
        "high = ...           # whoever has more counts with this",
        "step = 0.01          # numbers are rounded to it: 0.01 for money with cents, 1 for whole",
        "relative = 0.02      # the default accuracy of its sums; or half_width = ...",
    ),
    "date": ("low = ...            # such as 2020-01-01", "high = ..."),
    "timestamp": (
        "low = ...            # such as 2020-01-01: the first moment is its midnight",
        "high = ...           # such as 2029-12-31: the last step is the last of that day",
        'step = "hour"        # or minute, or day: moments are cut down to it',
    ),
}
HALF_WIDTHS_IN_TABLE = 1000  # so many of them are the declared number of rows
HALF_WIDTH_MIN = 10
HALF_WIDTH_UNKNOWN = 100  # where no number is declared
ZONE = 'time_zone = "UTC"  # or such as "Europe/Oslo": on whose clock moments are read'
NOT_PRIVATE = """\
# NOT PRIVATE: the levels below were read from the rows, and so were low, high and step, which are
# rounded. Whoever sees this file, or the list of levels that the server shows to everyone, learns
# which values occur. Replace each of them by what is publicly known, unless the values themselves
# are no secret.
"""


SERVER = """\
[server]
listen = "127.0.0.1:31337"     # only this machine; another address needs the two tls_ lines
# postgres_listen = "127.0.0.1:5433"    # for psql, BI tools and other PostgreSQL clients
# tls_certificate = "server.pem"
# tls_key = "server.key"
# allow_anonymous = true       # to try it out: anybody on this machine may ask, without a token
"""
PUBLIC = """\
# A table that anybody may see can be joined with this one, and its column can give levels.
# [public.cities]
# source = "cities.csv"
# key = "city"
"""


@dataclass(frozen=True, slots=True)
class Draft:
    """A draft.

    Parameters
    ----------
    text : str
        TOML.
    left_open : tuple of str
        The columns whose levels or bounds are left to fill in.
    left_out : tuple of str
        Those that cannot be served, and what the draft says of each.
    """

    text: str
    left_open: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def draft(  # noqa: PLR0913 - what was asked for
    location: Drafted,
    *,
    source: str,
    table: str,
    told: ToldFormat = NOTHING_TOLD,
    n_records_max: int | None = None,
    read_levels: bool = False,
    only: Sequence[str] = (),
    tell: Tell = lambda _share: None,
) -> Draft:
    """A configuration as TOML text.

    Parameters
    ----------
    location : SourceLocation or PostgresRows
        The private rows.
    source : str
        Where they are, as the configuration says it: a path is as seen from its folder.
    table : str
        The name of the table in SQL.
    told : ToldFormat
        How a file of text is written, as far as its owner says so.
    n_records_max : int, optional
        The owner's public bound on the number of records.
    read_levels : bool
        Fill in levels from the rows. Not private.
    only : sequence of str
        The columns to draft; all if there are none.
    tell : callable
        Is told how much of the rows is read.

    Raises
    ------
    ConfigurationInvalid
        If they cannot be read, or if it is not sure how.
    """
    if not is_servable_name(table):
        what = f"--table should be a name of 1 to {NAME_LENGTH_MAX} printable characters"
        raise ConfigurationInvalid(f"{what}.")

    def units(columns: Sequence[tuple[str, str]], primary_key: Sequence[str]) -> list[str]:
        # A column of text may still turn out to be a key.
        named = [NamedColumn(name, kind, kind_of(kind or "VARCHAR")) for name, kind in columns]
        found = propose(named, table, primary_key)
        return [] if found is None else [found.column]

    wanted = Wanted(columns=only, levels=read_levels, units=units, tell=tell)
    look = look_at(location, told, wanted)
    columns = [NamedColumn(name, kind, kind_of(kind, name)) for name, kind in look.columns]
    unit = propose(columns, table, look.primary_key)
    found = look.units.get(unit.column) if unit is not None else None
    read = None
    if found is not None:
        kinds = {one.name for one in columns if one.kind}
        constant = tuple(name for name in found.constant if name in kinds)
        read = RowsOfUnits(found.has_null, found.has_several, constant)
    parts = [_header(location, read_levels=read_levels)]
    parts.append(SERVER)
    lines = unit_lines(unit, table, read)
    unit_text = [_comment(line) if line.startswith("#") else line for line in lines]
    text_lines = _text_lines(location, look.text, told)
    parts.append(_table_section(location, source, table, n_records_max, text_lines, unit_text))
    left_open, left_out = [], []
    for column in columns:
        if unit is not None and column.name == unit.column:
            continue
        why = _why_left_out(column)
        if why:
            parts.append(f"# Column {_comment(column.name) or '(without a name)'}: {why}.\n")
            left_out.append(f"{_comment(column.name)}: {why}")
            continue
        drafted, is_open = _column_section(table, column, look.seen.get(column.name))
        parts.append(drafted)
        if is_open:
            left_open.append(column.name)
    if look.unnamed:
        places = listed([str(place) for place in look.unnamed])
        why = "no name in the first line, so it cannot be served"
        parts.append(f"# Column {places} of the file: {why}.\n")
        left_out.append(f"column {places}: {why}")
    parts.append(PUBLIC)
    return Draft("\n".join(parts), tuple(left_open), tuple(left_out))


def _why_left_out(column: NamedColumn) -> str:
    """Why a column cannot be served; empty if it can."""
    if not is_servable_name(column.name):
        return (
            f"a name in SQL has 1 to {NAME_LENGTH_MAX} printable characters; rename it in the "
            "file, or in a view"
        )
    if column.kind is None:
        return f"a {column.type_name} column cannot be served; a view may cast it"
    return ""


def _text_lines(location: Drafted, text: TextFormat | None, told: ToldFormat) -> Iterator[str]:
    """The keys that say how a file of text is written, where its name does not say so."""
    if text is None or not isinstance(location, SourceLocation):
        return
    default = default_format(location.path)
    if text.delimiter != default.delimiter or told.delimiter is not None:
        yield f"delimiter = {toml_string(text.delimiter)}"
    if text.decimal != default.decimal or told.decimal is not None:
        yield f"decimal = {toml_string(text.decimal)}"
    if text.encoding != default.encoding or told.encoding is not None:
        yield f"encoding = {toml_string(text.encoding)}"
    if told.header is not None:
        yield f"header = {str(text.header).lower()}"


def kind_of(type_name: str, name: str = "") -> str | None:
    """The kind of axis for a DuckDB type, if there is one; whole numbers may be money by name.

    >>> kind_of("DECIMAL"), kind_of("BIGINT"), kind_of("TIMESTAMP_NS")
    ('measure', 'integer', 'timestamp')
    >>> kind_of("BIGINT", "loan_amount"), kind_of("BIGINT", "number_of_payments")
    ('measure', 'integer')
    """
    if type_name in INTEGERS:
        return "measure" if names_money(name) else "integer"
    if type_name in REALS:
        return "measure"
    if type_name in MOMENTS - {"DATE"} or type_name == ZONED:
        return "timestamp"
    named = {"VARCHAR": "category", "ENUM": "category", "BOOLEAN": "boolean", "DATE": "date"}
    return named.get(type_name)


def _header(location: Drafted, *, read_levels: bool) -> str:
    name, what = location.label, "table"
    looked = "the names and types of its columns"
    if isinstance(location, SourceLocation):
        name, what = location.path.name, "file"
    if isinstance(location, SourceLocation) and location.kind is SourceKind.CSV:
        looked += " (of text, the types that\n# all fields of a column have)"
    if read_levels:
        looked += ", and the values in it"
    ending = NOT_PRIVATE if read_levels else f"# Nothing else of the {what} is in this draft.\n"
    return (
        f"# A draft by `tacit init` for {_comment(name)}.\n"
        f"# What was looked at: {looked}.\n{ending}"
        "# Lines with `...` are for you to fill in, from public knowledge.\n"
    )


def _table_section(  # noqa: PLR0913, PLR0917 - what the section says
    location: Drafted,
    source: str,
    table: str,
    n_records_max: int | None,
    text: Iterable[str],
    unit: Sequence[str],
) -> str:
    lines = [
        "[ledger]",
        f"path = {toml_string(table + '.ledger')}",
        "",
        f"[tables.{toml_key(table)}]",
        f"source = {toml_string(source)}",
    ]
    named = location.table if isinstance(location, PostgresRows) else location.source_table
    if named is not None:
        lines.append(f"source_table = {toml_string(named)}")
    if isinstance(location, PostgresRows):
        lines.append('# password_file = "reader.password"  # or PGPASSWORD, or ~/.pgpass')
    lines += text
    bound = "# n_records_max = ..." if n_records_max is None else f"n_records_max = {n_records_max}"
    lines += [
        *unit,
        'budget = "1.0"          # the epsilon that may ever be spent on this table',
        'default_cost = "0.01"   # the most that a statement costs which names no target',
        'per_query = "0.1"       # the most that any statement costs; once the table is in use:',
        _comment(f"#   tacit limit set {quote(table)} each_analyst --per-query 0.05"),
        f"{bound}  # a public upper bound on the number of records",
        f"half_width = {_half_width(n_records_max):<10} # what names no target is not narrower",
        "confidence = 0.95",
        'strategy = "auto"       # what to measure: auto, query, cells, dyadic or paper',
        'history = "shared"      # or private: analysts are not shown what others have asked',
        "",
        "# A column may also say `null = true` (NULL is a level of its own) and, unless boolean,",
        "# `other = VALUE` (stands for everything outside its levels). A row with a value that has",
        "# no level is left out of the table. A column that is not listed here is not served.",
        '# A number that is only summed and averaged is a `kind = "measure"`, with `low`, `high`',
        "# and `step`: values are clamped to these bounds, and rounded to whole steps from low.",
        "",
    ]
    return "\n".join(lines)


def _half_width(n_records_max: int | None) -> int:
    """The narrowest half-width that is bought by default, for a table of at most so many records.

    >>> _half_width(1_000_000), _half_width(500), _half_width(None)
    (1000, 10, 100)
    """
    if n_records_max is None:
        return HALF_WIDTH_UNKNOWN
    return max(HALF_WIDTH_MIN, n_records_max // HALF_WIDTHS_IN_TABLE)


def _column_section(table: str, column: NamedColumn, seen: Seen | None) -> tuple[str, bool]:
    """The section of a column, and whether it is left open."""
    heading = f"[tables.{toml_key(table)}.columns.{toml_key(column.name)}]"
    kind = str(column.kind)
    found = []
    if seen is not None:
        kind = found_kind(seen, kind)
        found = found_levels(seen, kind)
    lines = [heading, f'kind = "{kind}"', *(found or _commented(kind))]
    if seen is not None and not found and kind == "category" and seen.texts is None:
        lines.append(f"# More than {N_LEVELS_LISTED_MAX} texts occur: list those that matter and")
        lines.append('# say other = "other", or leave the column out.')
    if column.type_name == ZONED:
        lines.append(ZONE)
    return "\n".join([*lines, ""]), not found and bool(PLACEHOLDERS[kind])


def _commented(kind: str) -> Iterator[str]:
    return (f"# {line}" for line in PLACEHOLDERS[kind])


def _comment(text: str) -> str:
    """Text that stays on one comment line."""
    return "".join(c if c.isprintable() else "?" for c in text)
