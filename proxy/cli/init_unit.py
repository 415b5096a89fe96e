"""The privacy unit that a draft proposes, and the comments that say why and what to decide.

By the names and types of columns alone: a name says what is meant, and no row is looked at. Only
for owners who ask for levels from the rows is it looked at, too, whether somebody has several rows.
Nothing here proposes how many rows to keep: that is decided from public knowledge.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cube.axis import NAME_LENGTH_MAX
from planner.sql.messages import listed
from proxy.cli.init_toml import toml_string

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
        Whether a row is about nobody.
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
    column : str
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
    columns : sequence of NamedColumn
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
        yield "# No column is named as somebody's key, so each row is its own person: whoever has"
        yield "# several is protected for each row alone. If a column says whom a row is about:"
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
        yield f"# It could also be {listed(list(unit.others))}: name whoever is to be protected."
    if read is not None:
        yield from _read_lines(read)
    yield from _number_lines(unit, table, read)


def _read_lines(read: RowsOfUnits) -> Iterator[str]:
    """What was read of the rows about the unit, in words."""
    if read.has_null:
        yield "# Read from the rows: some are about nobody (NULL); Tacit does not start with them."
    said = "somebody has several rows" if read.has_several else "nobody has two rows"
    yield f"# Read from the rows: {said}."


def _number_lines(unit: ProposedUnit, table: str, read: RowsOfUnits | None) -> Iterator[str]:
    """What is said of the number of rows to keep, and of what it makes possible."""
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
