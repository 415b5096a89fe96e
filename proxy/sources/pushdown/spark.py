"""A table behind Spark Connect: Spark, Databricks, or Sail, which understands Spark's words too.

One session a table, whose time zone is UTC. A table is read at the version that its owner names, or
as it is where they say that it never changes. The client's own texts and logs may quote a statement
or a token, and go nowhere.
"""

import datetime as dt
import json
import logging
import sys
import threading
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from sqlglot import exp

from cube.axis import STEPS
from proxy.sources.axis_sql import SourceColumn
from proxy.sources.location import SparkTable
from proxy.sources.pushdown.dialect import (
    BIG,
    DIGEST_DIGITS,
    DOUBLE,
    DOUBLE_MAX,
    PLACE,
    VALUE,
    Dialect,
    both,
    call,
    searched,
    text,
    whole,
)
from proxy.sources.pushdown.engine import EngineError, Failure, Identity

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession
    from pyspark.sql.dataframe import DataFrame


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
        """No one asks for it."""
        raise NotImplementedError

    def number_of(self, writer: exp.Expr) -> exp.Expr:
        """No one asks for it."""
        raise NotImplementedError

    def is_among(self, writer: exp.Expr, numbers: Sequence[int]) -> exp.Expr:
        """No one asks for it."""
        raise NotImplementedError

    def bucket(self, value: exp.Expr, edges: Sequence[float], last: float) -> exp.Expr | None:  # noqa: ARG002 - the same
        """It has one for edges at equal distances only, computed with an error."""
        return None

    def about_how_many(self, value: exp.Expr) -> exp.Expr | None:
        """Of their texts, as Sail estimates no number of doubles."""
        return call("approx_count_distinct", exp.cast(value.copy(), "TEXT"))


def _listed(values: Sequence[str]) -> exp.Expr:
    return call("from_json", text(json.dumps(values)), text("array<string>"))


UTC: Final = ("spark.sql.session.timeZone", "UTC")
TYPES: Final = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
}


class Spark:
    """A table that Spark reads.

    Parameters
    ----------
    timeout : float
        How long one statement may take, in seconds.
    """

    def __init__(self, location: SparkTable, timeout: float) -> None:
        self.dialect = SparkSql()
        self.label = location.label
        self._location = location
        self._timeout = timeout
        self._lock = threading.Lock()  # a session's statements are one after the other
        self._session: SparkSession | None = None
        self.frame: DataFrame | None = None  # the table, as the session names it
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="spark")

    @contextmanager
    def reading(self) -> Iterator["_Reading"]:
        """Begin a look at the table; EngineError."""
        with self._lock:
            try:
                yield _Reading(self, self._location)
            except EngineError:
                # Whatever is wrong with a session, another one begins anew.
                self._end()
                raise

    def in_time(self, ask: Any) -> Any:
        """What a function of the session gives, before the timeout; EngineError."""
        tag = f"tacit-{uuid.uuid4().hex}"
        begun = self._thread.submit(self._asked, ask, tag)
        try:
            return begun.result(self._timeout)
        except Late:
            with suppress(Exception):
                if self._session is not None:
                    self._session.interruptTag(tag)
            self._thread.shutdown(wait=False)
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="spark")
            raise EngineError(Failure.LATE) from None

    def _asked(self, ask: Any, tag: str) -> Any:
        """In the thread of the session."""
        failure = Failure.UNREACHABLE
        try:
            if self._session is None:
                self._session = _session(self._location)
            failure = Failure.BROKEN
            self._session.addTag(tag)
            try:
                return ask(self._session)
            finally:
                self._session.removeTag(tag)
        except EngineError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, its text may quote a row
            found = Failure.REFUSED if _is_of_the_statement(error) else failure
            raise EngineError(found) from None

    def _end(self) -> None:
        session, self._session, self.frame = self._session, None, None
        if session is not None:
            with suppress(Exception):
                session.stop()


class _Reading:
    """A look at a table that does not change while its identity is the same."""

    def __init__(self, engine: Spark, location: SparkTable) -> None:
        self._engine = engine
        version = None
        if location.version is not None:
            version = exp.Version(
                this="VERSION", kind="AS OF", expression=exp.Literal.number(location.version)
            )
        *folders, table = (exp.to_identifier(part, quoted=True) for part in location.parts)
        outer = dict(zip(("db", "catalog"), reversed(folders), strict=False))
        self.table = exp.Table(this=table, version=version, **outer)
        fields, files = engine.in_time(self._described)
        self.columns: Mapping[str, SourceColumn] = {
            field.name.casefold(): _column(field.name, field.dataType.simpleString())
            for field in fields
        }
        types = (f"{field.name} {field.dataType.simpleString()}" for field in fields)
        self.identity = Identity((*types, *files))

    def rows(self, query: exp.Expr) -> pa.Table:
        """What a statement gives; EngineError."""
        text = self._engine.dialect.sql(query)
        return self._engine.in_time(lambda session: session.sql(text).toArrow())

    def age_of(self, transaction: int) -> int:  # noqa: ARG002 - of every engine
        """Spark numbers no transactions."""
        raise EngineError(Failure.BROKEN)

    def _described(self, session: "SparkSession") -> tuple[list[Any], list[str]]:
        """The table's columns, and the files that it is made of."""
        named = self._engine.frame
        if named is None:
            asked = exp.select("*").from_(self.table.copy())
            named = self._engine.frame = session.sql(self._engine.dialect.sql(asked))
        frame = named.select("*")  # whose answers are not remembered
        return list(frame.schema.fields), sorted(frame.inputFiles())


@contextmanager
def _with_a_main_file() -> Iterator[None]:
    """Give a process that was started without a file one, for a moment.

    The client takes such a process (``python -c``, as others start workers) for a doctest of its
    own, looks for a whole Spark, and ends the process if there is none.
    """
    main = sys.modules["__main__"]
    if hasattr(main, "__file__"):
        yield
        return
    main.__file__ = "<none>"
    try:
        yield
    finally:
        del main.__file__


def _session(location: SparkTable) -> "SparkSession":
    try:
        with _with_a_main_file(), warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # it warns of newer releases of pandas, which we never use
            from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415 - an extra
    except ImportError:
        raise EngineError(Failure.NOT_INSTALLED) from None
    # The client logs statements, and what they failed of.
    logging.getLogger("pyspark").setLevel(logging.CRITICAL + 1)
    session = SparkSession.builder.remote(location.remote()).create()
    # What is to be tried again is decided here; the client would try for ten minutes.
    session.client.set_retry_policies([])
    session.conf.set(*UTC)
    return session


def _column(name: str, kind: str) -> SourceColumn:
    """A column by Spark's name of its type; what has no name here fits no axis."""
    family, _, digits = kind.rstrip(")").partition("(")
    if family == "decimal":
        return SourceColumn(name, "DECIMAL", False, int(digits.split(",")[1]))
    if family in {"char", "varchar"}:
        return SourceColumn(name, "VARCHAR", False)
    return SourceColumn(name, TYPES.get(kind, kind.upper()), False)


def _is_of_the_statement(error: Exception) -> bool:
    """Whether Spark refused a statement before it ran."""
    return type(error).__name__ in {"AnalysisException", "ParseException"}
