"""PostgreSQL's words."""

import datetime as dt
import math
from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from proxy.sources.pushdown.dialect import DIGEST_DIGITS, DOUBLE_MAX, PLACE, VALUE, Dialect
from proxy.sources.pushdown.trees import (
    BIG,
    DOUBLE,
    between,
    call,
    case,
    double,
    minus,
    plus,
    text,
    times,
    whole,
)

HOURS_A_DAY: Final = 24
MINUTES_AN_HOUR: Final = 60
LEAST: Final = "1e-300"  # PostgreSQL refuses to round a number to a double that is 0


class PostgresSql(Dialect):
    """What PostgreSQL says in its own words."""

    sqlglot_name = "postgres"
    n_edges_max = 2**20

    def text(self, column: exp.Expr) -> exp.Expr:
        """By its bytes; of a `char(n)` without the blanks that fill it up."""
        as_text = exp.cast(column.copy(), "TEXT")
        return exp.Collate(this=as_text, expression=exp.to_identifier("C", quoted=True))

    def is_finite(self, value: exp.Expr) -> exp.Expr:
        """NaN is above every double here."""
        return between(value, double(-DOUBLE_MAX), double(DOUBLE_MAX))

    def is_number(self, value: exp.Expr) -> exp.Expr:
        """A NUMERIC may be NaN, too."""
        return exp.NEQ(this=value.copy(), expression=exp.cast(text("NaN"), "DECIMAL"))

    def one_zero(self, value: exp.Expr) -> exp.Expr:
        """They are equal here."""
        return value.copy()

    def as_double(self, value: exp.Expr, *, is_unbounded: bool) -> exp.Expr:
        """A NUMERIC without a scale may be beyond every double, or between 0 and the least."""
        nearest = exp.cast(value.copy(), DOUBLE)
        if not is_unbounded:
            return nearest
        largest = exp.cast(text(repr(DOUBLE_MAX)), "DECIMAL")
        least = exp.cast(text(LEAST), "DECIMAL")
        is_beyond = exp.GT(this=call("abs", value), expression=largest)
        is_least = exp.LT(this=call("abs", value), expression=least)
        least_double = exp.cast(times(call("sign", value), least), DOUBLE)
        infinite = exp.cast(text("Infinity"), DOUBLE)
        return case(((is_beyond, infinite), (is_least, least_double)), nearest)

    def divided(self, value: exp.Expr, by: int) -> exp.Expr:
        """A whole number divided by another, cut towards 0."""
        return exp.Div(this=exp.paren(value.copy()), expression=whole(by), typed=True)

    def days_since(self, low: dt.date, day: exp.Expr) -> exp.Expr:
        """The days from one date to another."""
        return minus(day, exp.cast(text(low.isoformat()), "DATE"))

    def on_clock(self, zone: str, moment: exp.Expr) -> exp.Expr:
        """What the clock of a zone shows at a moment."""
        return call("timezone", text(zone), moment)

    def steps_since(self, low: dt.datetime, step: str, moment: exp.Expr) -> exp.Expr:
        """An interval between times is days, hours and minutes, whole numbers each."""
        since = minus(moment, exp.cast(text(str(low)), "TIMESTAMP"))
        days = call("date_part", text("day"), since)
        hours = plus(times(days, whole(HOURS_A_DAY)), call("date_part", text("hour"), since))
        minutes = plus(
            times(hours, whole(MINUTES_AN_HOUR)), call("date_part", text("minute"), since)
        )
        return exp.cast({"day": days, "hour": hours, "minute": minutes}[step], BIG)

    def place(self, value: exp.Expr, edges: Sequence[exp.Expr]) -> exp.Expr:
        """By a binary search of its own, which compares as `>=` does."""
        found = call("width_bucket", value, exp.Array(expressions=[one.copy() for one in edges]))
        return call("nullif", minus(found, whole(1)), whole(-1))

    def levels(self, values: Sequence[str], alias: str) -> exp.Expr:
        """One literal, whatever their number."""
        escaped = (one.replace("\\", "\\\\").replace('"', '\\"') for one in values)
        listed = exp.cast(text("{" + ",".join(f'"{one}"' for one in escaped) + "}"), "TEXT[]")
        rows = exp.Unnest(
            expressions=[listed],
            alias=exp.TableAlias(
                this=exp.to_identifier("listed"), columns=[exp.to_identifier(VALUE)]
            ),
            offset=exp.to_identifier("number"),
        )
        place = minus(exp.column("number"), whole(1)).as_(PLACE)
        return exp.select(exp.column(VALUE), place).from_(rows).subquery(alias)

    def digest_part(self, text: exp.Expr, part: int) -> exp.Expr:
        """Sixty bits of it, from its hexadecimal digits."""
        hexadecimal, utf8 = exp.Literal.string("hex"), exp.Literal.string("UTF8")
        digest = call("encode", call("sha256", call("convert_to", text, utf8)), hexadecimal)
        start = whole(part * DIGEST_DIGITS + 1)
        digits = call("substr", digest, start, whole(DIGEST_DIGITS))
        written = call("concat", exp.Literal.string("x"), digits)
        return exp.cast(exp.cast(written, f"BIT({4 * DIGEST_DIGITS})"), BIG)

    def writer_of_row(self) -> exp.Expr | None:
        """The number of the transaction that wrote a row is in it."""
        return exp.column("xmin")

    def age_of(self, writer: exp.Expr) -> exp.Expr:
        """PostgreSQL looks up the present number for it, which its parallel workers cannot."""
        return call("age", writer)

    def number_of(self, writer: exp.Expr) -> exp.Expr:
        """Its 32 bits, which begin anew after as many transactions."""
        return exp.cast(exp.cast(writer.copy(), "TEXT"), BIG)

    def is_among(self, writer: exp.Expr, numbers: Sequence[int]) -> exp.Expr:
        """By equality, of which many are looked up in a hash table."""
        return exp.In(this=writer.copy(), expressions=[text(str(one)) for one in numbers])

    def bucket(self, value: exp.Expr, edges: Sequence[float], last: float) -> exp.Expr | None:
        """NaN is above every double here, so that one search says all."""
        ends = [*edges, math.nextafter(last, math.inf)]
        return call("width_bucket", value, exp.Array(expressions=[double(one) for one in ends]))

    def about_how_many(self, value: exp.Expr) -> exp.Expr | None:  # noqa: ARG002 - of every engine
        """A search takes it less time than grouping by thousands of values."""
        return None
