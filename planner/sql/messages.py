"""Quotes SQL in refusals, and suggests names.

Everything quoted here is the analyst's own text or the public schema.
"""

import difflib
from collections.abc import Iterable, Iterator

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from cube.refusals import TextPosition, UnsupportedSql
from planner.sql.nodes import copy_of

SHOWN_LENGTH = 80  # a message is one line on a terminal; the analyst has the rest of the text
DIALECT = "tacit"  # by name: planner.sql.dialect, which defines it, quotes SQL as well
_START = "start"  # in the meta data of a node with a place: the characters before it
_PLACE = ("line", "col", _START)
N_CANDIDATES_MAX = 2000  # comparing with each level of a large axis would take seconds


def shortened(text: str) -> str:
    """The text on one line, cut to a length that fits a message."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_LENGTH else line[: SHOWN_LENGTH - 3] + "..."


def shown(node: exp.Expr) -> str:
    """A node as SQL, short enough for a message."""
    return shortened(text_of(node, unsupported_level=ErrorLevel.IGNORE))


def text_of(node: exp.Expr, unsupported_level: ErrorLevel = ErrorLevel.WARN) -> str:
    """A node as SQL, as the analyst wrote it but for spaces and the like."""
    # A generator may change what it prints; sqlglot's own copy takes longer than the printing.
    return copy_of(node).sql(
        dialect=DIALECT, comments=False, unsupported_level=unsupported_level, copy=False
    )


def origin(node: exp.Expr) -> dict[str, int]:
    """The line and column where a node begins in the analyst's text; empty if planning made it.

    A node that the parser did not place, such as an operator, begins with the first of its parts; a
    type or a unit of time, which have none, where the node around it begins.
    """
    if isinstance(node, exp.DataType | exp.Var) and node.parent is not None:
        node = node.parent
    first = min(_places(node), key=_start_of, default={})
    return {name: first[name] for name in _PLACE if name in first}


def position(node: exp.Expr) -> TextPosition | None:
    """Where a node begins in the analyst's text; None if planning made it."""
    found = origin(node)
    return position_at(found["line"], found["col"]) if found else None


def position_at(line: int, column: int) -> TextPosition:
    """A place in a text, both numbers counted from 1."""
    return TextPosition(line, column)


def unsupported(node: exp.Expr, why: str, hint: str) -> UnsupportedSql:
    """A refusal that names the node, '<node> <why>.', where it is, and what works instead."""
    return UnsupportedSql(f"{shown(node)} {why}.", hint=hint, position=position(node))


def _places(node: exp.Expr) -> Iterator[dict[str, int]]:
    """The meta data of a node, or of the outermost of its parts that the parser placed."""
    if _START in node.meta:
        yield node.meta
    else:
        for part in node.iter_expressions():
            yield from _places(part)


def _start_of(meta: dict[str, int]) -> int:
    return meta[_START]


def suggestion(wanted: str, names: Iterable[str]) -> str | None:
    """'Did you mean ..?' with the names most like `wanted`, letter case aside."""
    by_folded: dict[str, str] = {}
    for name, _ in zip(names, range(N_CANDIDATES_MAX), strict=False):
        by_folded.setdefault(name.casefold(), name)
    close = difflib.get_close_matches(wanted.casefold(), by_folded, n=3, cutoff=0.5)
    if not close:
        return None
    return f"Did you mean {' or '.join(repr(by_folded[name]) for name in close)}?"


def listed(names: Iterable[str], n_max: int = 12) -> str:
    """Names separated by commas, the first few of them."""
    every = list(names)
    more = "" if len(every) <= n_max else f", and {len(every) - n_max} more"
    return ", ".join(every[:n_max]) + more
