"""`tacit init`: a first configuration file, from the names and types of columns.

A draft leaves everything that must be public knowledge for the owner of the data to fill in.
Reading levels from the rows is optional, and is not private: what it finds becomes public.
"""

from collections.abc import Iterator, Sequence
from shlex import quote

from proxy.cli.init_levels import found_levels
from proxy.cli.init_source import Drafted, looked_at
from proxy.cli.init_toml import toml_key, toml_string
from proxy.cli.init_unit import NamedColumn, ProposedUnit, propose, rows_of_units, unit_lines
from proxy.sources.axis_sql import INTEGERS, MOMENTS, REALS, ZONED
from proxy.sources.location import PostgresRows, SourceKind, SourceLocation

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


def draft(
    location: Drafted,
    *,
    source: str,
    table: str,
    n_records_max: int | None = None,
    read_levels: bool = False,
) -> str:
    """A configuration as TOML text.

    Parameters
    ----------
    location : SourceLocation or PostgresRows
        The private rows.
    source : str
        Where they are, as the configuration says it: a path is as seen from `folder`.
    table : str
        The name of the table in SQL.
    n_records_max : int, optional
        The owner's public bound on the number of records.
    read_levels : bool
        Fill in levels from the rows. Not private.

    Raises
    ------
    ConfigurationInvalid
        If they cannot be read.
    """
    with looked_at(location, read_rows=read_levels) as look:
        columns = [NamedColumn(name, kind, kind_of(kind)) for name, kind in look.columns]
        unit = propose(columns, table)
        others = [one.name for one in columns if one.kind and _is_column(one, unit)]
        read = (
            rows_of_units(unit.column, others, look.relation, look.ask)
            if read_levels and unit
            else None
        )
        levels = {
            column.name: found_levels(look.relation, column.name, column.kind, look.ask)
            for column in columns
            if read_levels and column.kind is not None
        }
    parts = [_header(location, read_levels=read_levels)]
    parts.append(SERVER)
    lines = unit_lines(unit, table, read)
    unit_text = [_comment(line) if line.startswith("#") else line for line in lines]
    parts.append(_table_section(location, source, table, n_records_max, unit_text))
    parts += [
        _column_section(table, column, levels.get(column.name))
        for column in columns
        if _is_column(column, unit)
    ]
    parts.append(PUBLIC)
    return "\n".join(parts)


def _is_column(column: NamedColumn, unit: ProposedUnit | None) -> bool:
    """Whether a column of the file is drafted as one of the table: the unit is none."""
    return unit is None or column.name != unit.column


def kind_of(type_name: str) -> str | None:
    """The kind of axis for a DuckDB type, if there is one.

    >>> kind_of("DECIMAL"), kind_of("BIGINT"), kind_of("TIMESTAMP_NS")
    ('measure', 'integer', 'timestamp')
    """
    if type_name in INTEGERS:
        return "integer"
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
        looked += " (a CSV file's types are guessed\n# from its rows)"
    if read_levels:
        looked += ", and the values in it"
    ending = NOT_PRIVATE if read_levels else f"# Nothing else of the {what} is in this draft.\n"
    return (
        f"# A draft by `tacit init` for {_comment(name)}.\n"
        f"# What was looked at: {looked}.\n{ending}"
        "# Lines with `...` are for you to fill in, from public knowledge.\n"
    )


def _table_section(
    location: Drafted,
    source: str,
    table: str,
    n_records_max: int | None,
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
    bound = "# n_records_max = ..." if n_records_max is None else f"n_records_max = {n_records_max}"
    lines += [
        *unit,
        'budget = "1.0"          # the epsilon that may ever be spent on this table',
        "# So that it lasts, cap what one query may cost, at a twentieth of the budget, say:",
        _comment(f"#   tacit limit set {quote(table)} each_analyst --per-query 0.05"),
        f"{bound}  # a public upper bound on the number of records",
        "half_width = 100        # the accuracy of a request that names none",
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


def _column_section(table: str, column: NamedColumn, levels: list[str] | None) -> str:
    heading = f"[tables.{toml_key(table)}.columns.{toml_key(column.name)}]"
    if column.kind is None:
        return f"# {_comment(heading)}: a {column.type_name} column cannot be served.\n"
    lines = [heading, f'kind = "{column.kind}"']
    lines += levels or _commented(column.kind)
    if column.type_name == ZONED:
        lines.append(ZONE)
    return "\n".join([*lines, ""])


def _commented(kind: str) -> Iterator[str]:
    return (f"# {line}" for line in PLACEHOLDERS[kind])


def _comment(text: str) -> str:
    """Text that stays on one comment line."""
    return "".join(c if c.isprintable() else "?" for c in text)
