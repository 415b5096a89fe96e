"""`tacit init`: a first configuration file, from the names and types of columns.

A draft leaves everything that must be public knowledge for the owner of the data to fill in.
Reading levels from the rows is optional, and is not private: what it finds becomes public.

It proposes a privacy unit, with comments that say why and what to decide. By the names and types of
columns alone: a name says what is meant, and no row is looked at. Only for owners who ask for
levels from the rows is it looked at, too, whether somebody has several rows. Nothing here proposes
how many rows to keep: that is decided from public knowledge.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Final

from cube.axis import NAME_LENGTH_MAX
from cube.refusals import ConfigurationInvalid
from planner.sql.messages import listed
from proxy.cli.draft.levels import (
    N_LEVELS_LISTED_MAX,
    Seen,
    found_kind,
    found_levels,
    toml_key,
    toml_string,
)
from proxy.cli.draft.source import Drafted, Tell, Wanted, look_at
from proxy.cli.draft.text_file import NOTHING_TOLD, ToldFormat
from proxy.sources.axis_sql import INTEGERS, MOMENTS, REALS, ZONED
from proxy.sources.location import PostgresRows, SourceKind, SourceLocation, default_format
from proxy.sources.text_format import TextFormat

# Words for somebody, in the singular; the first are so by themselves, the others before a key.
_BARE = "client|customer|employee|member|participant|patient|person|student|subscriber|user"
_PEOPLE: Final = re.compile(
    f"{_BARE}|account|applicant|borrower|buyer|child|citizen|consumer|contact|donor|driver|guest|"
    "holder|household|individual|insured|learner|owner|passenger|payer|player|pupil|reader|"
    "resident|respondent|rider|subject|taxpayer|tenant|traveller|visitor|voter|worker|"
    # A document is of somebody.
    "badge|card|iban|licence|license|medallion|membership|passport|permit|policy|"
    "registration|vehicle"
)
_KEYS: Final = ("code", "guid", "hash", "id", "key", "no", "nr", "number", "ref", "uuid")
_MONEY: Final = re.compile(
    "amount|balance|betrag|bonus|charges?|compensation|costs?|debt|deposit|donation|earnings|"
    "einkommen|expenses?|fare|fees?|fines?|gehalt|income|kosten|loan|lohn|mortgage|paid|pay|payment|"
    "preis|premium|price|profit|rent|revenue|salar(y|ies)|sales?|spend|spending|tax(es)?|tip|total|"
    "turnover|umsatz|wages?"
)
_CURRENCIES: Final = frozenset(
    ("usd", "eur", "gbp", "chf", "nok", "sek", "dollars", "euro", "euros", "cents")
)
_COUNTS: Final = frozenset(("n", "num", "number", "nr", "count", "is", "has", "day", "days"))
_BY_ITSELF: Final = re.compile(f"{_BARE}|email|login|mail|msisdn|phone|ssn|username")
IRREGULAR: Final = {"people": "person", "persons": "person", "children": "child"}
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_KINDS: Final = frozenset({"category", "integer"})  # of a key, beside a UUID


@dataclass(frozen=True, slots=True)
class NamedColumn:
    """A column as its name and type describe it; `kind` is the axis that fits it, if any."""

    name: str
    type_name: str
    kind: str | None


@dataclass(frozen=True, slots=True)
class RowsOfUnits:
    """What was read of the rows about a proposed unit; not private.

    Parameters
    ----------
    has_null : bool
        Whether the unit of some row is NULL.
    has_several : bool
        Whether somebody has several rows.
    constant : tuple of str
        The columns that are the same in all rows of everybody.
    """

    has_null: bool
    has_several: bool
    constant: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProposedUnit:
    """The column that says whom a row is about, as far as names tell.

    Parameters
    ----------
    is_of_table : bool
        Whether it is the key of the table itself, which has one row for each.
    is_primary_key : bool
        Whether the database says so.
    others : tuple of str
        Further columns that could be it.
    """

    column: str
    is_of_table: bool
    others: tuple[str, ...] = ()
    is_primary_key: bool = False


def propose(
    columns: Sequence[NamedColumn], table: str, primary_key: Sequence[str] = ()
) -> ProposedUnit | None:
    """The unit of a table; None if no column is named as somebody's key or the table's.

    A person's key comes before the table's own: an order is not who is to be protected.

    Parameters
    ----------
    table : str
        The name of the table in SQL.
    primary_key : sequence of str
        The columns of its PRIMARY KEY, if a database has it; only a single one is a unit.
    """
    able = [one.name for one in columns if one.kind in _KINDS or one.type_name == "UUID"]
    able = [name for name in able if is_servable_name(name)]
    people = [name for name in able if names_person(name)]
    named = [name for name in able if names_row(name, table)]
    keys = [name for name in able if [name] == list(primary_key)]
    own = list(dict.fromkeys([*keys, *named]))
    found = [*[name for name in people if name in own], *people, *own]
    if not found:
        return None
    others = tuple(name for name in dict.fromkeys(found[1:]) if name != found[0])
    return ProposedUnit(found[0], found[0] in own, others, found[0] in keys)


def is_servable_name(name: str) -> bool:
    """Whether a column may have this name in a configuration."""
    return 0 < len(name) <= NAME_LENGTH_MAX and name.isprintable()


def names_person(column: str) -> bool:
    """Whether a column is named as a key of somebody.

    >>> [names_person(name) for name in ("customer_id", "PatientNo", "userid", "app_user_id")]
    [True, True, True, True]
    >>> [names_person(name) for name in ("user", "email", "order_id", "users", "customer_age")]
    [True, True, False, False, False]
    """
    *before, last = _words(column) or [""]
    if before and last in _KEYS:
        return _PEOPLE.fullmatch(before[-1]) is not None
    joined = "".join((*before, last))
    of_whom = next((joined.removesuffix(key) for key in _KEYS if joined.endswith(key)), "")
    return bool(_BY_ITSELF.fullmatch(joined) or (not before and _PEOPLE.fullmatch(of_whom)))


def names_row(column: str, table: str) -> bool:
    """Whether a column is named as the key of a table is.

    >>> [names_row(name, "customers") for name in ("ID", "customer_id", "city_id", "age")]
    [True, True, False, False]
    """
    words = _words(column)
    joined = "".join(words)
    stem = _singular("".join(_words(table)))
    is_plain = joined in {"id", "uuid", "guid"}
    return is_plain or any(joined in {f"{stem}{key}", f"{stem}s{key}"} for key in _KEYS)


def names_money(column: str) -> bool:
    """Whether a column is named as an amount of money is, which is summed rather than counted by.

    >>> [names_money(name) for name in ("loan_amount", "TotalPrice", "income", "n_payments")]
    [True, True, True, False]
    """
    words = _words(column)
    while words and words[-1] in _CURRENCIES:
        words = words[:-1]
        if not words:
            return True
    return bool(words) and words[0] not in _COUNTS and _MONEY.fullmatch(words[-1]) is not None


def unit_lines(unit: ProposedUnit | None, table: str, read: RowsOfUnits | None) -> Iterator[str]:
    """The lines of a draft about the unit: what is proposed, why, and what is left to decide.

    Parameters
    ----------
    unit : ProposedUnit, optional
        None if there is none to propose.
    table : str
        The name of the table in SQL.
    read : RowsOfUnits, optional
        What was read of the rows, if the owner requested it.
    """
    if unit is None:
        yield (
            "# No column is named like a person's key, so each row counts as a person of its own."
        )
        yield ("# Each row is protected alone. If a column says whom a row is about, name it:")
        yield '# unit = "..."'
        return
    yield f"unit = {toml_string(unit.column)}  # whom a row is about, by the column's name"
    if unit.is_of_table:
        said = "the PRIMARY KEY" if unit.is_primary_key else "named as the key"
        yield f"# It is {said} of {table}: then everybody has one row, and Tacit refuses"
        yield "# to start if somebody has two. If one person can have several, name the column that"
        yield "# says who, or each row is protected alone."
    else:
        yield "# It names a person, who may have several rows. Every epsilon (the budget, what an"
        yield "# answer costs, a limit) is for all rows of a person together."
    if unit.others:
        yield (f"# It could also be {listed(list(unit.others))}: name those to be protected.")
    if read is not None:
        yield from _read_lines(read)
    yield from _number_lines(unit, table, read)


def _read_lines(read: RowsOfUnits) -> Iterator[str]:
    """What was read of the rows about the unit, in words."""
    if read.has_null:
        yield "# Read from the rows: some have NULL here; Tacit does not start with them."
    said = "some people have several rows" if read.has_several else "everybody has one row"
    yield f"# Read from the rows: {said}."


def _number_lines(unit: ProposedUnit, table: str, read: RowsOfUnits | None) -> Iterator[str]:
    """The lines on the number of rows to keep, and on what it makes possible."""
    if read is not None and not read.has_several:
        return
    wanted = "if one person can have several" if unit.is_of_table else "if anybody has two"
    yield f"# rows_per_unit_max = ...  # {wanted}: how many rows of each are kept"
    yield "#   Take it from what is public (a rule, what was published, what the answers are for),"
    yield "#   not from these rows. An answer costs so many times what it would with one row each;"
    yield "#   rows beyond it are missing from every answer, whatever epsilon is. It cannot be"
    yield '#   changed later. The docs weigh noise against bias: "Serve orders, visits, payments".'
    yield "# rows_per_unit_max_by = { day = 2 }  # and at most so many for each level of a column"
    if read is None:
        yield '# per_unit = ["city"]  # columns that are the same in all rows of a person: then'
        yield f"#   {table}.units has one row for each, whatever rows are kept"
    elif read.constant:
        named = ", ".join(map(toml_string, read.constant))
        yield f"# per_unit = [{named}]  # the same in all rows of a person, as read from the rows:"
        yield f"#   then {table}.units has one row for each, whatever rows are kept"


def _words(name: str) -> list[str]:
    """The words of a name, in lower case.

    >>> _words("CustomerID"), _words("bill to-user_id")
    (['customer', 'id'], ['bill', 'to', 'user', 'id'])
    """
    return [word.lower() for word in _WORD.findall(name)]


def _singular(word: str) -> str:
    """A word for one of several.

    >>> _singular("customers"), _singular("people"), _singular("households")
    ('customer', 'person', 'household')
    """
    return IRREGULAR.get(word, word.removesuffix("s"))


PLACEHOLDERS = {
    "category": (
        'levels = ["...", "..."]',
        'levels_from = "cities.csv:city"  # or this: a public file',
    ),
    "integer": ("low = ...", "high = ..."),
    "boolean": (),
    "measure": (
        "low = ...            # bounds decide the noise; they come from knowledge, not from rows",
        "high = ...           # larger values count as this",
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
# rounded. Who sees this file, or the list of levels that the server shows to everyone, learns
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
        The draft, as TOML.
    left_open : tuple of str
        The columns whose levels or bounds are left to fill in.
    left_out : tuple of str
        The columns that cannot be served, each with the reason that the draft gives.
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
        'default_cost = "0.01"   # the most that a statement without a target costs',
        'per_query = "0.1"       # the most that any statement costs; once the table is in use:',
        _comment(f"#   tacit limit set {quote(table)} each_analyst --per-query 0.05"),
        f"{bound}  # a public upper bound on the number of records",
        (f"half_width = {_half_width(n_records_max):<10} # for statements without a target"),
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
