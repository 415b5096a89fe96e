"""Bounds on the work of an allowed expression on one combination of levels, before it runs.

DuckDB notices an interrupt only between two vectors of 2048 rows, and matching a pattern on a long
text takes the product of their lengths. So an expression with too high a bound is not run. A step
is about a nanosecond, by the worst measurement for each kind of node; most take far less.

Lengths of texts are bounded by the longest level of each column and by the literals: no allowed
function returns a text longer than its arguments together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from planner.meaning.made import COPIES, Copies, copied
from planner.meaning.made import n_nodes_run as n_nodes_of
from planner.meaning.moments import n_pieces, thresholds
from planner.meaning.table import N_CHARACTERS_OF_A_VALUE, longest_text
from planner.sql.date_functions import Age, DateBin, DateDifference, TimeBucket, ToChar
from planner.sql.nodes import PublicLookup, children, every_node

N_STEPS_A_CELL = 64  # in addition: to read a combination, and to make an array of the values
N_STEPS_PLAIN = 12  # arithmetic, a comparison, a branch
N_STEPS_COSTLY = 150  # casts, powers, dates, decimals
N_STEPS_LOOKUP = 300  # a value found by its key, in a table of any size
N_STEPS_A_CHARACTER = 2  # to copy a text, or to compare it
N_STEPS_A_LETTER = 12  # to turn a letter into upper or lower case
N_STEPS_A_MATCH = 5  # a character of a text and one of a pattern: RE2 without its tables
N_STEPS_A_PIECE = 400  # of a pattern: a part of a moment as text, filled up
N_CHARACTERS_MIN = N_CHARACTERS_OF_A_VALUE

_COSTLY = (
    *(exp.Cast, exp.TryCast, exp.Pow, exp.TimestampTrunc, exp.Interval, exp.Round, exp.LastDay),
    *(exp.DateFromParts, Age, DateDifference, TimeBucket, DateBin),
)
_SEARCHES = (exp.StrPosition, exp.Replace, exp.Trim)
LengthOf = Callable[[exp.Expr], int]


@dataclass(frozen=True, slots=True)
class Effort:
    """Bounds on evaluating an expression once.

    Parameters
    ----------
    n_steps : int
    n_nodes : int
        The number of nodes of the expression.
    n_characters : int
        The length of the value, if it is a text.
    n_characters_made : int
        The total length of all intermediate texts.
    """

    n_steps: int
    n_nodes: int
    n_characters: int
    n_characters_made: int


def effort(expression: exp.Expr, length_of: LengthOf) -> Effort:
    """The work of an expression.

    Parameters
    ----------
    expression : Expr
        An allowed expression.
    length_of : callable
        The most characters of a value of a column, or of a looked-up column.
    """
    known: dict[int, Effort] = {}
    for node in reversed(every_node(expression)):  # inner nodes come first
        inner = [known[id(child)] for child in children(node)]
        lengths = [one.n_characters for one in inner]
        length = _length(node, lengths, length_of)
        again = copied(node, _COPIES)
        if again is not None:
            inner += [known[id(again[0])]] * again[1]
        known[id(node)] = Effort(
            _steps(node, lengths, length) + sum(one.n_steps for one in inner),
            1 + sum(one.n_nodes for one in inner),
            length,
            length + sum(one.n_characters_made for one in inner),
        )
    return known[id(expression)]


_COPIES: Final[Copies] = {
    **COPIES,
    exp.WidthBucket: lambda node: len(thresholds(node)) + 1,
    ToChar: n_pieces,
}


def n_nodes_run(nodes: Sequence[exp.Expr]) -> int:
    """How many nodes DuckDB makes of an allowed tree, of all its nodes, with every copy counted."""
    return n_nodes_of(nodes, _COPIES)


def _length(node: exp.Expr, inner: list[int], length_of: LengthOf) -> int:
    """The most characters of a node's value; 0 if it is not a text."""
    if isinstance(node, exp.Column | PublicLookup):
        return length_of(node)
    if isinstance(node, exp.Literal):
        return len(node.name) if node.is_string else 0
    return longest_text(node, inner)


def _steps(node: exp.Expr, inner: list[int], length: int) -> int:
    if isinstance(node, PublicLookup):
        return N_STEPS_LOOKUP
    if isinstance(node, exp.Like | exp.ILike):
        pattern = len(node.expression.name) + 1
        return N_STEPS_PLAIN + N_STEPS_A_MATCH * (max(inner) + 1) * pattern
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
        return N_STEPS_PLAIN  # it is computed once
    steps = N_STEPS_COSTLY if isinstance(node, _COSTLY) else N_STEPS_PLAIN
    if isinstance(node, _SEARCHES):
        longest, sought = sorted([*inner, 0, 0], reverse=True)[:2]
        return steps + (longest + 1) * (sought + 1)
    if isinstance(node, exp.Upper | exp.Lower):
        return steps + N_STEPS_A_LETTER * length
    if isinstance(node, ToChar):
        steps = N_STEPS_A_PIECE * n_pieces(node)
    if isinstance(node, exp.WidthBucket):
        steps = N_STEPS_PLAIN * (len(thresholds(node)) + 1)
    return steps + N_STEPS_A_CHARACTER * max([length, *inner])
