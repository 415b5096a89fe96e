"""A table behind Spark Connect: Spark, Databricks, or Sail.

One session a table, whose time zone is UTC. A table is read at the version that its owner names, or
as it is where they say that it never changes. The client's own texts and logs may quote a statement
or a token, and go nowhere.
"""

import logging
import sys
import threading
import uuid
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from sqlglot import exp

from proxy.sources.pushdown.engine import EngineError, Failure, Identity
from proxy.sources.pushdown.spark_sql import SparkSql
from proxy.sources.source_column import SourceColumn
from proxy.sources.spark_table import SparkTable

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession
    from pyspark.sql.dataframe import DataFrame

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
    location : SparkTable
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
