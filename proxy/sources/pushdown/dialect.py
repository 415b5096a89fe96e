"""What engines say each in their own words: the same results, asked of Spark and of PostgreSQL.

Here is only what the engines have no common words for; what levels mean is in positions.py. Nothing
here runs SQL.
"""

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Final

from sqlglot import exp

from proxy.sources.pushdown.trees import double

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
        """A double, of which 0 and -0 compare as equal."""

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
