"""A private table that stays in its engine: surveyed when it opens, then counted scope by scope.

The survey is one statement over all rows: whether they are as declared, and sums of a keyed digest
of each, by which the ledger knows them. Which rows are not as declared, and how many, is private: a
message names columns alone. Before counts leave `measure`, the rows that were counted are known to
be those of the survey: the engine says that it is the same table and, where tables may be written,
that no row is younger and none is missing; otherwise the survey is made again, of the same
snapshot, and must be the same. Proof: accountant/proofs/refinement.md, "Data that stays where it
is".

Only the accountant's gate may call `measure` and `measure_units`.
"""

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import numpy as np

from accountant import NOT_COUNTED, CellCounts, Grouping, UnitCells
from cube.encoding import canonical_json
from cube.refusals import ConfigurationInvalid, SourceUnavailable
from cube.schema import Schema
from proxy.sources.axis_sql import LEFT_OUT, SourceColumn, can_read
from proxy.sources.problems import Problems
from proxy.sources.pushdown.dialect import N_DIGEST_PARTS
from proxy.sources.pushdown.engine import Engine, EngineError, Failure, Identity, Reading
from proxy.sources.pushdown.positions import TooManyEdgesError
from proxy.sources.pushdown.statements import (
    AGE,
    COUNT,
    DIGEST,
    N_ALL,
    N_WRITERS_MAX,
    SEEN,
    TOTAL,
    WRITER,
    RowLook,
    Statements,
)


def check_columns(schema: Schema, label: str, columns: Mapping[str, SourceColumn]) -> None:
    """Raise ConfigurationInvalid unless every declared column is there, of a type that fits."""
    problems = Problems(label)
    for axis in schema.axes:
        column = columns.get(axis.name.casefold())
        keys = ("tables", schema.table, "columns", axis.name)
        if column is None:
            problems.add(keys, "the source has no such column")
        elif not can_read(axis, column):
            unlike = "in the source, which does not fit the declared kind"
            problems.add(keys, f"is {column.type_name} {unlike}")
    if schema.unit is not None and schema.unit.casefold() not in columns:
        problems.add(("tables", schema.table, "unit"), f"the source has no column {schema.unit}")
    problems.raise_if_any()


def check_survey(schema: Schema, label: str, found: Mapping[str, Any]) -> None:
    """Raise ConfigurationInvalid unless the rows are as declared."""
    problems = Problems(label)
    for place, axis in enumerate(schema.axes):
        if found[f"wrong_{place}"]:
            of_axis = ("tables", schema.table, "columns", axis.name)
            problems.add(of_axis, f"the source holds a value that is not of type {axis.sql_type}")
    keys = ("tables", schema.table, "unit")
    if found.get("has_no_unit"):
        problems.add(keys, "the source holds NULL; every row should name a unit")
    if found.get("has_several"):
        problems.add(
            keys,
            "the source holds a value twice; a table that is counted where it is should have one "
            'row for each unit; or declare rows_per_unit_max, and extract = "file"',
        )
    problems.raise_if_any()
    if found["has_too_many"]:
        raise ConfigurationInvalid(
            f"{label} holds more records than tables.{schema.table}.n_records_max allows.",
            hint="Declare a larger public upper bound.",
        )


Result = TypeVar("Result")

N_FEW_MAX: Final = 2**14  # values of a column, that are grouped before they are encoded
N_NUMBERS: Final = 2**32  # of transactions, which then begin anew
PAUSES_SECONDS: Final = (0.2, 1.0)  # before another attempt
HINTS: Final = {
    Failure.UNREACHABLE: "Is it running, and are the address and the credentials right?",
    Failure.LATE: "Declare a longer timeout, in seconds, or fewer columns.",
    Failure.REFUSED: "Its user needs to read the table, and nothing more.",
    Failure.NO_TABLE: "It must be a table or a materialised view, in a database of UTF-8.",
    Failure.NOT_INSTALLED: "pip install 'tacit-dp[spark]', or 'tacit-dp[postgres]'",
    Failure.BROKEN: "See its own log for the reason; this server does not repeat it.",
}


@dataclass(frozen=True, slots=True)
class _Known:
    """What a survey found, with the identity of its table."""

    found: Mapping[str, Any]
    identity: Identity
    writers: tuple[int, ...]  # of its rows, if they are few and the engine can say

    def says_the_same(self, found: Mapping[str, Any]) -> bool:
        """Whether another survey found the same; rows may be younger, as copies of them are."""
        return all(found[name] == value for name, value in self.found.items() if name != AGE)


class PushedDownSource:
    """The rows of one private table in an engine in which every declared column has a level.

    Parameters
    ----------
    schema : Schema
        Of a table that does not grow, each of whose units has one row.
    key : bytes
        The ledger's. What travels to the engine is made of it, and does not tell it.

    Raises
    ------
    ConfigurationInvalid
        If it cannot be read as declared. The message contains nothing from its rows.
    """

    def __init__(self, schema: Schema, engine: Engine, key: bytes) -> None:
        if schema.rows_per_unit_max > 1 or schema.grows is not None:
            raise ConfigurationInvalid(
                f"{engine.label} is counted where it is, so each unit must have one row, and the "
                "table cannot grow.",
                hint=(
                    "The rows that count for a unit depend on a secret key, which no engine is "
                    'given: use extract = "file".'
                ),
            )
        self._schema = schema
        self._engine = engine
        self._prepared: Statements | None = None
        self._is_changed = False  # as far as was seen
        named = canonical_json(["pushed down", engine.label])
        self._key = hmac.new(key, named.encode(), hashlib.sha256).hexdigest()
        try:
            self._known = self._tried(self._survey)
        except EngineError as error:
            raise ConfigurationInvalid(
                f"{engine.label} {error.failure}.", hint=HINTS[error.failure]
            ) from None
        except TooManyEdgesError:
            raise ConfigurationInvalid(
                f"{engine.label} cannot search as many edges as a column has.",
                hint="Declare fewer edges, or read the table from files.",
            ) from None
        check_survey(schema, engine.label, self._known.found)

    def fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - made in one way
        """The identity of the data, for holders of the key: HMAC-SHA256 in hexadecimal.

        It covers which table it is, its version if it has one, and the digests of its rows.
        """
        heading = ["pushed down", self._engine.label, *self._digests()]
        return hmac.new(key, canonical_json(heading).encode(), hashlib.sha256).hexdigest()

    def rows_fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - made in one way
        """The identity of the rows as they are served: HMAC-SHA256 in hexadecimal.

        It covers the columns' names, and sums of a keyed digest of the levels of each row.
        """
        names = sorted(axis.name for axis in self._schema.axes)
        heading = ["pushed down rows", *names, *self._digests()]
        return hmac.new(key, canonical_json(heading).encode(), hashlib.sha256).hexdigest()

    def measure(self, grouping: Grouping) -> CellCounts:
        """Exact counts of the cells of a scope that are not empty, each level as it is counted.

        Raises
        ------
        SourceUnavailable
            If the engine gave no answer, or its rows are no longer those that were surveyed.
        """
        try:
            return self._tried(lambda reading: self._counted(reading, grouping))
        except EngineError:
            raise SourceUnavailable("The private table could not be read.") from None

    def look(self) -> None:
        """Find out whether the table is still there, and not known to be another one.

        Raises
        ------
        SourceUnavailable
            If not; or if its rows had changed when they were last counted, and still have.
        """
        try:
            self._tried(self._looked)
        except (EngineError, ConfigurationInvalid):
            raise SourceUnavailable(
                f"The data of {self._schema.table} cannot be read just now.",
                hint="Ask again later: nothing was charged.",
            ) from None

    def _looked(self, reading: Reading) -> None:
        if self._is_changed or reading.identity.marks != self._known.identity.marks:
            self._check_again(reading)

    def measure_units(self, grouping: Grouping) -> UnitCells:  # noqa: ARG002 - of every source
        """Each unit has one row here."""
        raise ValueError("units with one row each are counted as rows")

    def _digests(self) -> list[str]:
        return [str(self._known.found[f"{DIGEST}_{part}"]) for part in range(N_DIGEST_PARTS)]

    def _tried(self, read: Callable[[Reading], Result]) -> Result:
        """What is read in one look, begun again if the connection fails."""
        for pause in PAUSES_SECONDS:
            try:
                with self._engine.reading() as reading:
                    return read(reading)
            except EngineError as error:
                if not error.may_pass:
                    raise
            time.sleep(pause)  # an engine that restarts needs a moment
        with self._engine.reading() as reading:
            return read(reading)

    def _statements(self, reading: Reading) -> Statements:
        """What is asked of the table; made anew only if its columns are others."""
        known = self._prepared
        if known is None or known.columns != reading.columns:
            check_columns(self._schema, self._engine.label, reading.columns)
            known = Statements(self._schema, reading.columns, self._engine.dialect)
            asked = known.how_many_values(reading.table)
            if asked is not None:
                (counts,) = reading.rows(asked).to_pylist()
                few = (name for name, n_values in counts.items() if n_values <= N_FEW_MAX)
                known = replace(known, few=frozenset(int(name.rpartition("_")[2]) for name in few))
            self._prepared = known
        return known

    def _survey(self, reading: Reading) -> _Known:
        statements = self._statements(reading)
        (found,) = reading.rows(statements.survey(reading.table, self._key)).to_pylist()
        asked, following = statements.writers(reading.table), reading.identity.following
        writers: list[int] = []
        if asked is not None and following is not None:
            writers = reading.rows(asked).column(WRITER).to_pylist()
            is_few = len(writers) <= N_WRITERS_MAX
            # Numbers that are no longer past by half of all would soon be those of others.
            is_told = all(0 < (following - one) % N_NUMBERS < N_NUMBERS // 2 for one in writers)
            writers = writers if is_few and is_told else []
        return _Known(found, reading.identity, tuple(writers))

    def _counted(self, reading: Reading, grouping: Grouping) -> CellCounts:
        """The cells of a scope, of rows that are known to be those that were surveyed."""
        known = self._known
        outside = [
            axis.name
            for place, axis in enumerate(self._schema.axes)
            if known.found[f"outside_{place}"]
        ]
        look = self._look_at_rows(reading.identity)
        statement = self._statements(reading).counting(reading.table, grouping, outside, look)
        found = reading.rows(statement)
        is_same = reading.identity.marks == known.identity.marks
        if not look.asks_nothing:
            is_total = np.asarray(found.column(TOTAL))
            ((n_all,), (seen,)) = (
                found.filter(is_total).column(name).to_pylist() for name in (COUNT, SEEN)
            )
            is_same = is_same and n_all == known.found[N_ALL] and self._is_old(reading, look, seen)
            found = found.filter(~is_total)
        if not is_same:
            self._check_again(reading)
        elif not look.asks_nothing:
            # They are the same rows, so this moment is as good as the survey's.
            identity = replace(known.identity, moment=reading.identity.moment)
            self._known = replace(known, identity=identity)
        arrays = [
            np.array(column, dtype=np.int64) for column in found.columns[: len(grouping.scope) + 1]
        ]
        *levels, counts = arrays
        is_counted = np.ones(counts.size, dtype=bool)
        for runs, array in zip(grouping.runs, levels, strict=True):
            is_counted &= (array > LEFT_OUT) & (runs.at(array) != NOT_COUNTED)
        return CellCounts(tuple(array[is_counted] for array in levels), counts[is_counted])

    def _look_at_rows(self, now: Identity) -> RowLook:
        """What has to be asked of rows, so that they are known to be those of the survey."""
        then, writers = self._known.identity, self._known.writers
        if self._engine.dialect.writer_of_row() is None or now.is_of_the_moment(then):
            return RowLook(asks_nothing=True)
        is_soon = (
            now.following is not None
            and then.following is not None
            and 0 <= now.following - then.following < N_NUMBERS // 2
        )
        return RowLook(writers=writers if is_soon else ())

    def _is_old(self, reading: Reading, look: RowLook, seen: int | None) -> bool:
        """Whether no row is younger than the survey."""
        newest = self._known.identity.newest
        if look.writers:
            return seen == 0
        return newest is not None and (seen is None or seen > reading.age_of(newest))

    def _check_again(self, reading: Reading) -> None:
        """Survey the rows that were counted; SourceUnavailable unless they are what they were."""
        again = self._survey(reading)
        self._is_changed = not self._known.says_the_same(again.found)
        if self._is_changed:
            raise SourceUnavailable(
                f"The data of {self._schema.table} has changed since it was read.",
                hint="Its owner can restore it, or accept the new data with `tacit table renew`.",
            )
        self._known = again
