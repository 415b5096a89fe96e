"""Limits the work of planning, and bounds the work of an expression.

Limits on the work of planning one statement, so that a short text cannot cause much work.

A text of a few hundred bytes can stand for millions of nodes (a name that stands for another name
twice, forty times over), for patterns that are matched on long texts, and for many tables of
millions of combinations. All of this work is counted before it is done, and refused beyond its
limit. So planning is bounded by these counts, independent of any deadline; every count is also a
step of the statement's pace.

The counts depend on the text, the schema and public tables alone, never on what other statements
left in a cache.

Bounds on the work of an allowed expression on one combination of levels, before it runs.

DuckDB notices an interrupt only between two vectors of 2048 rows, and matching a pattern on a long
text takes the product of their lengths. So an expression with too high a bound is not run. A step
is about a nanosecond, by the worst measurement for each kind of node; most take far less.

Lengths of texts are bounded by the longest level of each column and by the literals: no allowed
function returns a text longer than its arguments together.

A watchdog that interrupts one database query after its time limit.

It repeats the interrupt until the query has ended: DuckDB loses an interrupt that arrives while it
parses the query, and checks for one only between two vectors of rows.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Timer
from typing import Final

from sqlglot import exp

from cube.pace import checkpoint
from cube.refusals import TooLarge
from planner.meaning import (
    COPIES,
    Copies,
    copied,
    longest_text,
    n_pieces,
    thresholds,
)
from planner.meaning import n_nodes_run as n_nodes_of
from planner.sql import (
    Age,
    DateBin,
    DateDifference,
    PublicLookup,
    TimeBucket,
    ToChar,
    children,
    every_node,
    position,
    shown,
)

N_PUT_IN_MAX = 20_000  # nodes; as many as the longest text has, some 60 microseconds each
N_PLAN_CELLS_MAX = 2**24  # 128 MB of whole numbers
N_STEPS_MAX = 2**31  # about nanoseconds, each rated at the worst that was measured
N_DRAWN_MAX = 2**26  # of the truths of all formulas, some 30 nanoseconds each
N_DRAWN_EACH = 2**19  # as much as a formula takes however few are drawn: 128 fit
N_STEPS_EACH = 3 * 2**19  # to plan and read one expression, however small
N_STEPS_A_NODE = 2**15  # to rewrite, write out and bind one node of it


class Allowance:
    """The remaining allowance of one statement."""

    def __init__(self) -> None:
        self._n_put_in = 0
        self._n_cells = 0
        self._n_steps = 0
        self._n_drawn = 0
        self._n_formulas = 0

    def put_in(self, meaning: exp.Expr, node: exp.Expr) -> None:
        """Count the nodes that a name stands for, before they replace `node`.

        Raises
        ------
        TooLarge
            If names stand for more than `N_PUT_IN_MAX` nodes in total.
        """
        checkpoint()
        left = N_PUT_IN_MAX - self._n_put_in
        n_nodes = sum(1 for _ in zip(meaning.walk(), range(left + 1), strict=False))
        self._n_put_in += n_nodes
        if n_nodes > left:
            raise TooLarge(
                f"Expanding {shown(node)} takes the statement's names beyond {N_PUT_IN_MAX} "
                "words and signs.",
                hint="Give names to shorter expressions, or use the names less often.",
                position=position(node),
            )

    def cells(self, n_cells: int, node: exp.Expr | None = None) -> None:
        """Count combinations of levels on which something is evaluated or multiplied out.

        Raises
        ------
        TooLarge
            If the total exceeds `N_PLAN_CELLS_MAX`.
        """
        checkpoint()
        self._n_cells += n_cells
        if self._n_cells > N_PLAN_CELLS_MAX:
            raise TooLarge(
                f"The statement evaluates expressions on more than {N_PLAN_CELLS_MAX} "
                "combinations of levels.",
                hint="Ask for fewer things at once, or use fewer columns in each expression.",
                position=None if node is None else position(node),
            )

    def draws(self, n_drawn: int, formula: str) -> None:
        """Count the numbers that will be drawn for the intervals of a formula.

        Raises
        ------
        TooLarge
            If the total exceeds `N_DRAWN_MAX` numbers.
        """
        checkpoint()
        self._n_formulas += 1
        self._n_drawn += n_drawn + N_DRAWN_EACH
        if self._n_drawn > N_DRAWN_MAX:
            raise TooLarge(
                f"With {formula}, the statement has {self._n_formulas} averages, ratios or "
                f"quantiles. Their intervals need more than {N_DRAWN_MAX} random draws.",
                hint="Ask for fewer averages, ratios or quantiles at once, for fewer groups, or "
                "for a lower confidence.",
            )

    def steps(self, n_steps: int, n_nodes: int, node: exp.Expr) -> None:
        """Count the work of evaluating one expression.

        Raises
        ------
        TooLarge
            If it is more than `N_STEPS_MAX` in all.
        """
        checkpoint()
        before = self._n_steps
        self._n_steps += n_steps + N_STEPS_EACH + N_STEPS_A_NODE * n_nodes
        if self._n_steps > N_STEPS_MAX:
            alone = self._n_steps - before
            raise TooLarge(
                f"{shown(node)} needs up to {alone} steps on the public levels, after {before} "
                f"steps for earlier expressions; a statement may use {N_STEPS_MAX}.",
                hint="Use fewer columns and shorter texts and patterns in it, or ask for fewer "
                "things at once.",
                position=position(node),
            )


N_STEPS_A_CELL = 64  # in addition: to read a combination, and to make an array of the values
N_STEPS_PLAIN = 12  # arithmetic, a comparison, a branch
N_STEPS_COSTLY = 150  # casts, powers, dates, decimals
N_STEPS_LOOKUP = 300  # a value found by its key, in a table of any size
N_STEPS_A_CHARACTER = 2  # to copy a text, or to compare it
N_STEPS_A_LETTER = 12  # to turn a letter into upper or lower case
N_STEPS_A_MATCH = 5  # a character of a text and one of a pattern: RE2 without its tables
N_STEPS_A_PIECE = 400  # of a pattern: a part of a moment as text, filled up

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


SECONDS_BETWEEN: Final = 0.05  # between two interrupts


@contextmanager
def interrupted_after(seconds: float, interrupt: Callable[[], None]) -> Iterator[None]:
    """Interrupt the query inside, if it takes longer."""
    watchdog = _Watchdog(seconds, interrupt)
    watchdog.daemon = True
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()


class _Watchdog(Timer):
    def run(self) -> None:
        """Wait, then interrupt until it is cancelled."""
        seconds = self.interval
        while not self.finished.wait(seconds):
            with suppress(Exception):  # the query's connection was just closed
                self.function()
            seconds = SECONDS_BETWEEN
