"""Runs SQL on answers and public tables, and decides which of it is sure to be short.

Which SQL is sure to be short: a small grammar, and a limit on the size of the tables read.

SQL that callers wrote runs in a process of its own, since one call may take a gigabyte or an hour.
What this grammar makes cannot, so it needs none:

    SELECT item, .. FROM relation [WHERE expression] [ORDER BY name, ..] [LIMIT number]

An item is an expression with a name. An expression is made of columns, constants, arithmetic,
comparisons, CASE, and functions whose values are no longer than their arguments. So

* each row gives at most one row: no join, no subquery, no series, no grouping;
* DuckDB evaluates each node of an expression once for a row, but for what it writes out twice or
  tries row by row, whose nodes are counted as often. An alias is no column, or DuckDB would write
  it out where it is named;
* a value of a node is a number of at most 16 bytes, or a text that a column or the SQL holds.

`reach` multiplies: nodes times rows times what a row holds. Time and memory are bounded by it, but
for the logarithm that a sort adds. All that is not in the grammar has no reach.

Post-processing of noisy answers: SQL on noisy and public relations.

Each call sees only the relations it is given, so whatever SQL is run here, its result depends only
on what is public already. What is bounded by its input (`short_sql`) runs here, everything else in
a process that can be ended (`sql_process`); what it meets there becomes a refusal here.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyarrow as pa

from cube.pace import checkpoint, seconds_left
from cube.refusals import Refused, TooLarge, UnknownName, UnsupportedSql
from proxy.outer_sql.closed_database import (
    BINDING,
    N_BYTES_RESULT,
    N_ROWS_MAX,
    TOO_LARGE,
    TOO_MUCH,
    ClosedDatabase,
    SqlEnded,
)
from proxy.outer_sql.process import PROCESSES
from proxy.sources.public import sql_type_of

N_TOKENS_MAX: Final = 1000
N_CHARACTERS_MAX: Final = 16_000
DEPTH_MAX: Final = 40
N_BYTES_A_NUMBER: Final = 16
N_TWICE: Final = 3  # NULLIF(a, b) is CASE WHEN a = b THEN NULL ELSE a END
N_TRIED: Final = 4  # TRY evaluates row by row where one fails
N_FAILED: Final = 200  # which takes 15 microseconds for one that does
N_REMEMBERED: Final = 2048

# What may stand in the SQL. Two signs beside each other are one that is not listed, or a comment;
# a name before a parenthesis is a function.
_TOKEN: Final = re.compile(
    r""" (?:
      (?P<name>"[^"]+"(?!"|\ *\() | a[0-9]+(?![\w(]|\ \())
    | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?![\w.]))
    | (?P<text>'[^']*'(?!'))
    | (?P<word>[A-Za-z]+(?![\w.$]))
    | (?P<sign>(?:<=|>=|<>|[-+*/<>=])(?![-+*/<>=!]) | [(),])
    )\ * """,
    re.VERBOSE | re.ASCII,
)
_BINARY: Final = frozenset(["+", "-", "*", "/", "<", ">", "=", "<=", ">=", "<>", "AND", "OR"])
_CONSTANTS: Final = frozenset((("word", "NULL"), ("word", "TRUE"), ("word", "FALSE")))
_TYPES: Final = frozenset(("DOUBLE", "BIGINT", "INTEGER", "BOOLEAN"))
# Each gives a number, or one of its arguments.
_FUNCTIONS: Final = frozenset(
    (
        *("ABS", "SIGN", "FLOOR", "CEIL", "ROUND", "SQRT", "LN", "EXP", "POWER"),
        *("GREATEST", "LEAST", "COALESCE"),
    )
)
_END: Final = ("end", "")


class _NotShort(Exception):
    """The SQL is not of the grammar."""


@dataclass(frozen=True, slots=True)
class ShortSql:
    """SQL of the grammar.

    Parameters
    ----------
    relation : str
        What it reads.
    columns : frozenset of str
        What it takes to be columns of it.
    n_nodes : int
        How many nodes of expressions DuckDB evaluates for a row.
    """

    relation: str
    columns: frozenset[str]
    n_nodes: int
    n_characters: int


def reach(sql: str, relations: Mapping[str, pa.Table]) -> int | None:
    """The most bytes that are touched for a query; None if the grammar does not bound it.

    Parameters
    ----------
    relations : mapping
        What the query can read, by its name.
    """
    short = read(sql)
    table = None if short is None else relations.get(short.relation)
    if short is None or table is None:
        return None
    names = table.column_names
    if not short.columns.issubset(names) or len({name.casefold() for name in names}) < len(names):
        return None
    if any(sql_type_of(field.type) is None for field in table.schema):
        return None
    n_rows: int = table.num_rows
    a_node: int = N_BYTES_A_NUMBER * n_rows + table.nbytes
    return short.n_nodes * a_node + short.n_characters * n_rows


@lru_cache(N_REMEMBERED)
def read(sql: str) -> ShortSql | None:
    """SQL of the grammar; None if it is not."""
    if len(sql) > N_CHARACTERS_MAX:
        return None
    try:
        return _Reader(sql).statement()
    except _NotShort:
        return None


def _tokens(sql: str) -> Iterator[tuple[str, str]]:
    """The kind and the text of each token; words in capitals, names without quotes."""
    place = 0
    while place < len(sql):
        found = _TOKEN.match(sql, place)
        if found is None or found.lastgroup is None:
            raise _NotShort
        kind, text, place = found.lastgroup, found[found.lastgroup], found.end()
        yield kind, text.upper() if kind == "word" else text.strip('"') if kind == "name" else text
    yield _END


class _Reader:
    """Reads one statement; each method passes what it names, and counts its nodes."""

    def __init__(self, sql: str) -> None:
        self._tokens = list(_tokens(sql))
        if len(self._tokens) > N_TOKENS_MAX:
            raise _NotShort
        self._n_characters = len(sql)
        self._place = 0
        self._depth = 0
        self._columns: set[str] = set()

    def statement(self) -> ShortSql:
        self._expect("SELECT")
        n_nodes, aliases = 0, set()
        while True:
            n_nodes += self._expression()
            self._expect("AS")
            aliases.add(self._name().casefold())
            if not self._passed(","):
                break
        self._expect("FROM")
        relation = self._name()
        if self._passed("WHERE"):
            n_nodes += self._expression()
        if not aliases.isdisjoint(name.casefold() for name in self._columns):
            raise _NotShort
        n_nodes += self._order()
        if self._passed("LIMIT"):
            self._number()
        if self._next() != _END:
            raise _NotShort
        return ShortSql(relation, frozenset(self._columns), n_nodes, self._n_characters)

    def _order(self) -> int:
        """What it is sorted by: columns of the result or of the relation, nothing computed."""
        if not self._passed("ORDER"):
            return 0
        self._expect("BY")
        n_keys = 1
        while True:
            self._name()
            _ = self._passed("ASC") or self._passed("DESC")
            if self._passed("NULLS") and not self._passed("FIRST"):
                self._expect("LAST")
            if not self._passed(","):
                return n_keys
            n_keys += 1

    def _expression(self) -> int:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise _NotShort
        n_nodes = self._operand()
        while True:
            if self._next()[1] in _BINARY and self._next()[0] in {"sign", "word"}:
                self._place += 1
                n_nodes += 1 + self._operand()
            elif self._passed("IS"):
                self._passed("NOT")
                self._expect("NULL")
                n_nodes += 1
            else:
                self._depth -= 1
                return n_nodes

    def _operand(self) -> int:
        n_nodes = 1
        while self._passed("NOT") or self._passed("-"):
            n_nodes += 1
        kind, text = self._next()
        self._place += 1
        if kind == "name":
            self._columns.add(text)
            return n_nodes
        if kind in {"number", "text"} or (kind, text) in _CONSTANTS:
            return n_nodes
        if (kind, text) == ("sign", "("):
            n_nodes += self._expression()
            self._expect(")")
            return n_nodes
        return n_nodes + self._call(text if kind == "word" else "")

    def _call(self, word: str) -> int:
        match word:
            case "CASE":
                return self._case()
            case "CAST":
                return self._cast()
            case "NULLIF":
                return N_TWICE * sum(self._arguments())
            case "TRY":
                return N_FAILED + N_TRIED * sum(self._arguments())
            case _ if word in _FUNCTIONS:
                return sum(self._arguments())
        raise _NotShort

    def _arguments(self) -> list[int]:
        self._expect("(")
        found = [self._expression()]
        while self._passed(","):
            found.append(self._expression())
        self._expect(")")
        return found

    def _cast(self) -> int:
        self._expect("(")
        n_nodes = self._expression()
        self._expect("AS")
        kind, text = self._next()
        if kind != "word" or text not in _TYPES:
            raise _NotShort
        self._place += 1
        self._expect(")")
        return n_nodes

    def _case(self) -> int:
        """With conditions: a value that is compared with others is written out for each."""
        self._expect("WHEN")
        n_nodes = 0
        while True:
            n_nodes += self._expression()
            self._expect("THEN")
            n_nodes += self._expression()
            if not self._passed("WHEN"):
                break
        if self._passed("ELSE"):
            n_nodes += self._expression()
        self._expect("END")
        return n_nodes

    def _name(self) -> str:
        return self._of_kind("name")

    def _number(self) -> str:
        return self._of_kind("number")

    def _of_kind(self, wanted: str) -> str:
        kind, text = self._next()
        if kind != wanted:
            raise _NotShort
        self._place += 1
        return text

    def _next(self) -> tuple[str, str]:
        return self._tokens[self._place]

    def _passed(self, wanted: str) -> bool:
        """Pass a word or sign if it is next."""
        kind, text = self._tokens[self._place]
        is_next = text == wanted and kind in {"word", "sign"}
        self._place += is_next
        return is_next

    def _expect(self, wanted: str) -> None:
        if not self._passed(wanted):
            raise _NotShort


SECONDS_MAX: Final = 20.0  # answers are few; SQL that takes longer multiplies them with each other
REACH_MAX: Final = 2**25  # of SQL that runs here: a tenth of a second, 32 MB
ON_ANSWERS: Final = "SQL on the answers"
_SHOWN_LENGTH: Final = 160
# DuckDB's messages about names, among all its binder errors.
_OF_A_NAME: Final = re.compile(
    r"^Referenced |^Column .* referenced|^Ambiguous reference|does not have a column"
)


class OuterSql:
    """Runs SQL on the given relations, by itself or in processes that all engines share.

    Thread-safe.
    """

    def __init__(self) -> None:
        self._database = ClosedDatabase()

    def run(self, sql: str, relations: Mapping[str, pa.Table], what: str = ON_ANSWERS) -> pa.Table:
        """The result of a query over `relations`, by their names.

        Parameters
        ----------
        what : str
            What a refusal calls the query.

        Raises
        ------
        UnsupportedSql, UnknownName
            If the query cannot be run; the message has DuckDB's reason, which can reveal no more
            than the relations.
        TooLarge, TooSlow
            If the query takes too long, or its result is too large.
        """
        seconds = seconds_left(SECONDS_MAX)
        touched = reach(sql, relations)
        try:
            if touched is None or touched > REACH_MAX:
                return PROCESSES.run(sql, relations, seconds)
            return self._database.run(sql, relations)
        except SqlEnded as ended:
            if ended.kind == TOO_MUCH:
                checkpoint()  # the statement's deadline may have passed, however short this was
            raise _refusal(ended, what) from None


def _refusal(ended: SqlEnded, what: str) -> Refused:
    if ended.kind == TOO_MUCH:
        return TooLarge(
            f"The {what} takes too long, or too much memory.",
            hint="Join or group fewer of them at once.",
        )
    if ended.kind == TOO_LARGE:
        return TooLarge(
            f"The result has more than {N_ROWS_MAX} rows, or {N_BYTES_RESULT} bytes.",
            hint="Add a LIMIT, or select fewer columns.",
        )
    reason = _reason(ended.text)
    if ended.kind == BINDING and _OF_A_NAME.search(reason):
        return UnknownName(
            f"The {what} refers to an unknown name: {reason}.",
            hint="A SELECT can name only the columns of its FROM, as they are called there.",
        )
    return UnsupportedSql(
        f"The {what} cannot be computed: {reason}.",
        hint="Answers are numbers, keys have their columns' types, and DuckDB computes the rest.",
    )


def _reason(message: str) -> str:
    """The first line of DuckDB's message, without the error class and advice on settings."""
    line = message.split("\n", 1)[0].split(". ", 1)[0]
    line = line.split(": ", 1)[-1].rstrip(".!")
    return line if len(line) <= _SHOWN_LENGTH else line[: _SHOWN_LENGTH - 3] + "..."
