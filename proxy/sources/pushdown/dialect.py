"""What engines say each in their own words, and the shapes of SQL that they have in common.

A dialect has only what the engines have no common words for: the same results, asked of Spark and
of PostgreSQL; what levels mean is in positions.py. The few shapes that all statements are made of
are expression trees of sqlglot. Numbers and texts of the public declaration become literals here,
and nowhere else: a double is written as the text that only it reads back from, so that every engine
compares with the same one. Nothing here runs SQL.
"""

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import ClassVar, Final

from sqlglot import exp

BIG: Final = "BIGINT"
DOUBLE: Final = "DOUBLE"
FAN_OUT: Final = 32  # of a tree of comparisons


def whole(value: int) -> exp.Expr:
    """A whole number."""
    number = exp.Literal.number(abs(value))
    return exp.paren(exp.Neg(this=number)) if value < 0 else number


def double(value: float) -> exp.Expr:
    """A double, exactly."""
    return exp.cast(exp.Literal.string(repr(float(value))), DOUBLE)


def decimal(value: Decimal, digits: int, places: int) -> exp.Expr:
    """A decimal, exactly."""
    return exp.cast(exp.Literal.string(f"{value:f}"), f"DECIMAL({digits}, {places})")


def name(text: str, table: str | None = None) -> exp.Column:
    """A quoted column."""
    return exp.column(text, table=table, quoted=True)


def text(value: str) -> exp.Expr:
    """A text."""
    return exp.Literal.string(value)


def plus(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """A sum."""
    return exp.paren(exp.Add(this=left.copy(), expression=right.copy()))


def minus(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """A difference."""
    return exp.paren(exp.Sub(this=left.copy(), expression=right.copy()))


def times(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """A product."""
    return exp.paren(exp.Mul(this=left.copy(), expression=right.copy()))


def call(function: str, *arguments: exp.Expr) -> exp.Expr:
    """A function by its name in the engine."""
    return exp.Anonymous(this=function, expressions=[one.copy() for one in arguments])


def case(
    branches: Iterable[tuple[exp.Expr, exp.Expr]],
    otherwise: exp.Expr | None = None,
) -> exp.Case:
    """CASE WHEN ... THEN ... ELSE ... END."""
    found = exp.Case()
    for condition, value in branches:
        found = found.when(condition.copy(), value.copy())
    return found if otherwise is None else found.else_(otherwise.copy())


def both(*conditions: exp.Expr) -> exp.Expr:
    """All of the conditions; true of none."""
    return exp.and_(*conditions) if conditions else exp.true()


def between(value: exp.Expr, low: exp.Expr, high: exp.Expr) -> exp.Expr:
    """Whether a value lies between two others, or is one of them."""
    return exp.Between(this=value.copy(), low=low.copy(), high=high.copy())


def clamped(value: exp.Expr, low: int, high: int) -> exp.Expr:
    """A whole number that is not NULL, or the nearer of two bounds."""
    return call("greatest", whole(low), call("least", whole(high), value))


def searched(value: exp.Expr, edges: Sequence[exp.Expr]) -> exp.Expr:
    """The place of the last of some edges, in order, that is at most a value; NULL if none is.

    A tree of comparisons, broad and not deep: engines read what is nested slowly.
    """

    def among(first: int, end: int) -> exp.Expr:
        if end - first == 1:
            return whole(first)
        each = -(-(end - first) // FAN_OUT)
        starts = list(range(first, end, each))
        branches = [
            (exp.GTE(this=value.copy(), expression=edges[start].copy()), among(start, stop))
            for start, stop in zip(starts[1:], [*starts[2:], end], strict=True)
        ]
        return case(reversed(branches), among(first, starts[1]))

    reached = exp.GTE(this=value.copy(), expression=edges[0].copy())
    return case(((reached, among(0, len(edges))),))


DOUBLE_MAX: Final = 1.7976931348623157e308
VALUE: Final = "value"  # the columns of a relation of levels
PLACE: Final = "place"
N_DIGEST_PARTS: Final = 2
DIGEST_DIGITS: Final = 15  # in hexadecimal, of a part: a whole number below 2**60


class Dialect(ABC):
    """One engine's own words."""

    sqlglot_name: ClassVar[str]
    n_edges_max: ClassVar[int]  # among which a number is looked for

    def sql(self, tree: exp.Expr) -> str:
        """The text of a tree."""
        return tree.sql(dialect=self.sqlglot_name)

    def double(self, value: float) -> exp.Expr:
        """A double, exactly."""
        return double(value)

    @abstractmethod
    def text(self, column: exp.Expr) -> exp.Expr:
        """A text that is compared by its characters, whatever its column's collation says."""

    @abstractmethod
    def is_finite(self, value: exp.Expr) -> exp.Expr:
        """Whether a double is neither NaN nor infinite."""

    @abstractmethod
    def is_number(self, value: exp.Expr) -> exp.Expr:
        """Whether a decimal is one."""

    @abstractmethod
    def one_zero(self, value: exp.Expr) -> exp.Expr:
        """A double, changed so that 0 and -0 compare as equal."""

    @abstractmethod
    def as_double(self, value: exp.Expr, *, is_unbounded: bool) -> exp.Expr:
        """A number as the nearest double; one beyond every double as an infinite one."""

    @abstractmethod
    def divided(self, value: exp.Expr, by: int) -> exp.Expr:
        """A whole number divided by another, cut towards 0."""

    @abstractmethod
    def days_since(self, low: dt.date, day: exp.Expr) -> exp.Expr:
        """The days from one date to another, a whole number."""

    @abstractmethod
    def on_clock(self, zone: str, moment: exp.Expr) -> exp.Expr:
        """What the clock of a zone shows at a moment that knows its zone."""

    @abstractmethod
    def steps_since(self, low: dt.datetime, step: str, moment: exp.Expr) -> exp.Expr:
        """The whole steps from a time to a later one on the same wall."""

    @abstractmethod
    def place(self, value: exp.Expr, edges: Sequence[exp.Expr]) -> exp.Expr:
        """The place of the last of some edges, in order, that is at most a value; or NULL."""

    def place_in_list(self, value: exp.Expr, values: Sequence[str]) -> exp.Expr | None:  # noqa: ARG002 - of every engine
        """The place of a text among others, or NULL, if there are better words than a CASE."""
        return None

    @abstractmethod
    def levels(self, values: Sequence[str], alias: str) -> exp.Expr:
        """A relation of texts and their places."""

    @abstractmethod
    def digest_part(self, text: exp.Expr, part: int) -> exp.Expr:
        """One of `N_DIGEST_PARTS` whole numbers below 2**60 of a text's SHA-256."""

    @abstractmethod
    def writer_of_row(self) -> exp.Expr | None:
        """The transaction that wrote a row; None if the engine cannot say."""

    @abstractmethod
    def age_of(self, writer: exp.Expr) -> exp.Expr:
        """How many transactions began since one, if the engine says who wrote a row."""

    @abstractmethod
    def number_of(self, writer: exp.Expr) -> exp.Expr:
        """The short number of a transaction, if the engine says who wrote a row."""

    @abstractmethod
    def is_among(self, writer: exp.Expr, numbers: Sequence[int]) -> exp.Expr:
        """Whether a transaction has one of some short numbers, in words that run in parallel."""

    @abstractmethod
    def bucket(self, value: exp.Expr, edges: Sequence[float], last: float) -> exp.Expr | None:
        """The number of edges that a double reaches; one more above `last`, and for NaN.

        NULL for NULL. None if the engine has no search of its own; `place` is then written out.
        """

    @abstractmethod
    def about_how_many(self, value: exp.Expr) -> exp.Expr | None:
        """Roughly how many values a column has; None if it is no gain to group by them."""
