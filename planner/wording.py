"""How refusals quote SQL and suggest names.

Everything quoted here is the analyst's own text or the public schema.
"""

import difflib
from collections.abc import Iterable

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from cube.refusals import UnsupportedSql

SHOWN_LENGTH = 80  # a message is one line on a terminal; the analyst has the rest of the text
DIALECT = "tacit"  # by name: planner.dialect, which defines it, quotes SQL as well
N_CANDIDATES_MAX = 2000  # comparing with each level of a large axis would take seconds


def shortened(text: str) -> str:
    """The text on one line, cut to a length that fits a message."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_LENGTH else line[: SHOWN_LENGTH - 3] + "..."


def shown(node: exp.Expr) -> str:
    """A node as SQL, short enough for a message."""
    return shortened(node.sql(dialect=DIALECT, comments=False, unsupported_level=ErrorLevel.IGNORE))


def unsupported(node: exp.Expr, why: str, hint: str | None = None) -> UnsupportedSql:
    """A refusal that names the node: '<node> <why>.'."""
    return UnsupportedSql(f"{shown(node)} {why}.", hint=hint)


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
