"""Spark's words, which Sail understands too, in a session whose time zone is UTC."""

import datetime as dt
import json
from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from cube.axis import STEPS
from proxy.sources.pushdown.dialect import DIGEST_DIGITS, DOUBLE_MAX, PLACE, VALUE, Dialect
from proxy.sources.pushdown.trees import BIG, DOUBLE, both, call, searched, text, whole

MICROSECOND: Final = dt.timedelta(microseconds=1)
EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - on the wall, as levels are
N_LISTED_MAX: Final = 2**9  # texts among which one is looked for from the first to the last


class SparkSql(Dialect):
    """What Spark says in its own words."""

    sqlglot_name = "spark"
    n_edges_max = 2**8  # a search is written out, and Sail reads a thousand edges for seconds

    def double(self, value: float) -> exp.Expr:
        """One word, which Sail plans in a tenth of the time of a cast of a text."""
        number = exp.Literal.number(f"{abs(value)!r}D")
        return exp.paren(exp.Neg(this=number)) if value < 0 else number

    def text(self, column: exp.Expr) -> exp.Expr:
        """As it is: a column with a collation of its own is not read at all."""
        return exp.cast(column.copy(), "TEXT")

    def is_finite(self, value: exp.Expr) -> exp.Expr:
        """NaN is above every double, but an engine that skips files by their statistics forgets."""
        within = exp.LTE(this=call("abs", value), expression=self.double(DOUBLE_MAX))
        return both(exp.not_(call("isnan", value)), within)

    def is_number(self, value: exp.Expr) -> exp.Expr:  # noqa: ARG002 - of every engine
        """They all are here."""
        return exp.true()

    def one_zero(self, value: exp.Expr) -> exp.Expr:
        """Sail puts -0 below 0; their sum is 0."""
        return exp.paren(exp.Add(this=value.copy(), expression=self.double(0.0)))

    def as_double(self, value: exp.Expr, *, is_unbounded: bool) -> exp.Expr:  # noqa: ARG002 - the same
        """Every number of Spark's is within the doubles."""
        return exp.cast(value.copy(), DOUBLE)

    def divided(self, value: exp.Expr, by: int) -> exp.Expr:
        """A whole number divided by another, cut towards 0."""
        return exp.IntDiv(this=exp.paren(value.copy()), expression=whole(by))

    def days_since(self, low: dt.date, day: exp.Expr) -> exp.Expr:
        """The days from one date to another."""
        return call("datediff", day, exp.cast(text(low.isoformat()), "DATE"))

    def on_clock(self, zone: str, moment: exp.Expr) -> exp.Expr:
        """What the clock of a zone shows at a moment."""
        return call("from_utc_timestamp", moment, text(zone))

    def steps_since(self, low: dt.datetime, step: str, moment: exp.Expr) -> exp.Expr:
        """By microseconds since 1970: in UTC no clock is ever changed."""
        since = exp.Sub(
            this=call("unix_micros", moment), expression=whole((low - EPOCH) // MICROSECOND)
        )
        return self.divided(since, STEPS[step] // MICROSECOND)

    def place(self, value: exp.Expr, edges: Sequence[exp.Expr]) -> exp.Expr:
        """A tree of comparisons."""
        return searched(value, edges)

    def place_in_list(self, value: exp.Expr, values: Sequence[str]) -> exp.Expr | None:
        """One literal again; but each group of rows is compared with all of them."""
        if len(values) > N_LISTED_MAX:
            return None
        found = exp.Sub(this=call("array_position", _listed(values), value), expression=whole(1))
        return call("nullif", found, whole(-1))

    def levels(self, values: Sequence[str], alias: str) -> exp.Expr:
        """One literal, whatever their number: Spark analyses a row of VALUES for a millisecond."""
        listed = _listed(values)
        named = [exp.to_identifier(PLACE), exp.to_identifier(VALUE)]
        each = exp.Aliases(this=call("posexplode", listed), expressions=named)
        return exp.select(each).subquery(alias)

    def digest_part(self, text: exp.Expr, part: int) -> exp.Expr:
        """Sixty bits of it, from its hexadecimal digits."""
        start = whole(part * DIGEST_DIGITS + 1)
        digits = call("substr", call("sha2", text, whole(256)), start, whole(DIGEST_DIGITS))
        return exp.cast(call("conv", digits, whole(16), whole(10)), BIG)

    def writer_of_row(self) -> exp.Expr | None:
        """Spark numbers no transactions."""
        return None

    def age_of(self, writer: exp.Expr) -> exp.Expr:
        """Nobody asks for it."""
        raise NotImplementedError

    def number_of(self, writer: exp.Expr) -> exp.Expr:
        """Nobody asks for it."""
        raise NotImplementedError

    def is_among(self, writer: exp.Expr, numbers: Sequence[int]) -> exp.Expr:
        """Nobody asks for it."""
        raise NotImplementedError

    def bucket(self, value: exp.Expr, edges: Sequence[float], last: float) -> exp.Expr | None:  # noqa: ARG002 - the same
        """It has one for edges at equal distances only, computed with an error."""
        return None

    def about_how_many(self, value: exp.Expr) -> exp.Expr | None:
        """Of their texts, as Sail estimates no number of doubles."""
        return call("approx_count_distinct", exp.cast(value.copy(), "TEXT"))


def _listed(values: Sequence[str]) -> exp.Expr:
    return call("from_json", text(json.dumps(values)), text("array<string>"))
