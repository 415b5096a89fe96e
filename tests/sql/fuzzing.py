"""Generated SQL, asked of two engines whose tables differ in one record, and of DuckDB.

A session has a seed, which makes its statements, its number of records and the record by which the
two tables differ. Each statement has to

* end in an answer or a refusal, with the columns that were promised, and be refused at no cost;
* say what DuckDB says of the same records, where there is no noise and it can be put to DuckDB;
* be planned, priced, bought and refused alike on both tables, whatever the noisy answers;
* be free when it is asked again.

Purchases may follow noisy answers, as documented, for a target that is a fraction of the answer,
which is the default of sums, and for a half-width that is asked of a formula. Such statements, and
some of the others, go to two engines whose noise makes all noisy values the same: then all else
must be the same too, the answers, their intervals and every charge.
"""

import math
import random
import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import duckdb
import pyarrow as pa

from cube.refusals import Refused
from planner.workload import RequestedTarget
from proxy.api.requests import QueryRequest, QueryResult
from proxy.engine.answers.simulation import DIVISOR_WIDTHS
from proxy.engine.engine import Engine
from tests.sql.cases import spent
from tests.sql.comparing import Row, oracle_rows, rows_of, same_rows, same_sequence
from tests.sql.fuzz_junk import junk
from tests.sql.fuzz_outer import statement
from tests.sql.fuzz_statements import Statement
from tests.sql.fuzz_worlds import FuzzWorld, Pair, fuzz_world, oracle

N_STATEMENTS = 12  # of a session: a longer history makes each answer slower, and finds no more
SHARE_WITH_THE_SAME_ANSWERS = 0.3  # of the statements that do not follow answers
WIDTH_RECORDS_MAX = 50.0  # the widest default of a count, or of a sum for each unit of its values
LARGEST_NUMBER = 1080.0  # that a generated sum has of one record: the last age times the visits
COUNTS = ("COUNT", "(SELECT COUNT", "SUM(COUNT")
HALF_WIDTHS = (*[None] * 8, 200.0, 20_000.0)


@dataclass(frozen=True)
class Find:
    """What is wrong with a statement."""

    seed: int
    place: int
    sql: str
    wrong: str

    def __str__(self) -> str:
        return f"seed {self.seed}, statement {self.place}: {self.wrong}\n  {self.sql}"


@dataclass
class Tally:
    """How much was asked."""

    answered: int = 0
    refused: int = 0
    compared: int = 0
    held_against_a_neighbour: int = 0
    with_the_same_answers: int = 0


@dataclass(frozen=True)
class Ended:
    """How a statement ended on one engine."""

    sql: str
    release: QueryResult | None
    refusal: Refused | None
    charged: Fraction

    @property
    def decision(self) -> tuple[object, ...]:
        """All of it that must not depend on any one record."""
        if self.release is None:
            refusal = self.refusal
            return (self.charged, None if refusal is None else (refusal.code, refusal.explain()))
        data, receipt = self.release.data, self.release.receipt
        columns = [] if receipt is None else receipt.columns
        sources = [(column.name, column.epsilon_spent, column.source) for column in columns]
        return (self.charged, data.schema.remove_metadata(), sources)

    @property
    def shown(self) -> str:
        """All that its caller sees."""
        if self.release is None:
            return repr(self.decision)
        receipt = self.release.receipt
        columns = () if receipt is None else receipt.columns
        return repr((self.decision, self.release.data.to_pylist(), columns))

    @property
    def follows_answers(self) -> bool:
        """Whether it is a refusal after the answers, which says that they are paid for and kept.

        A target that depends on the answers was not reached; or a value of theirs is out of the
        range of what is computed from them.
        """
        return self.refusal is not None and "paid for and kept" in self.refusal.message


def asked(seed: int, place: int) -> tuple[Statement, QueryRequest]:
    """A statement of a session, and how it is asked."""
    rng = random.Random(f"statement {seed} {place}")  # noqa: S311 - a statement, not noise
    found = statement(rng)
    if rng.random() < 0.15:
        found = junk(rng, found)
    half_width = rng.choice(HALF_WIDTHS)
    return found, QueryRequest(sql=found.for_tacit, target=RequestedTarget(half_width=half_width))


def finds(
    seed: int, folder: Path, tally: Tally, n_statements: int = N_STATEMENTS
) -> Iterator[Find]:
    """What is wrong with the first statements of a session."""
    with fuzz_world(seed, folder) as world:
        for place in range(n_statements):
            found, request = asked(seed, place)
            rng = random.Random(f"checks {seed} {place}")  # noqa: S311 - which checks are made
            for wrong in _wrongs(world, found, request, rng, tally):
                shown = f"-- half_width: {request.target.half_width}\n  {request.sql}"
                yield Find(seed, place, shown, wrong)


def _wrongs(
    world: FuzzWorld, found: Statement, request: QueryRequest, rng: random.Random, tally: Tally
) -> Iterator[str]:
    try:
        follows_answers = _follows_answers(world.same_noise.one, request)
        is_moved = follows_answers or rng.random() < SHARE_WITH_THE_SAME_ANSWERS
        pair = world.same_answers if is_moved else world.same_noise
        if rng.random() < 0.2:
            yield from _differing_plans(pair, request)
        one, other = ask(pair.one, request), ask(pair.other, request)
        tally.answered += one.release is not None
        tally.refused += one.release is None
        tally.held_against_a_neighbour += not is_moved
        tally.with_the_same_answers += is_moved
        yield from _of_one(pair.one, request, one)
        if found.is_compared and not world.is_noisy and one.release is not None:
            tally.compared += 1
            yield from _against_duckdb(found, request, one.release.data, oracle(world.n_records))
        yield from _of_both(pair, found, one, other)
        if one.release is not None and rng.random() < 0.3:
            for engine in (pair.one, pair.other):
                again = ask(engine, request)
                if again.charged or again.release is None:
                    yield f"asked again, it costs {again.charged}: {again.refusal}"
    except Exception:  # noqa: BLE001 - whatever it is, it is a find
        yield traceback.format_exc(limit=-3)


def _follows_answers(engine: Engine, request: QueryRequest) -> bool:
    """Whether what is bought may follow noisy answers; the planner, which sees no data, knows."""
    try:
        planner = engine._visible_to(request.caller).planner
        planned = planner.plan(request.sql, request.target, request.parameters)
    except Refused:
        return False
    return any(part.is_searched for part in planned.parts)


def _of_one(engine: Engine, request: QueryRequest, ended: Ended) -> Iterator[str]:
    if ended.release is None:
        if ended.charged and not ended.follows_answers:
            yield f"refused, and charged {ended.charged}: {ended.refusal}"
        return
    promised, given = engine.result_schema(request), ended.release.data.schema
    if not promised.equals(given, check_metadata=False):
        yield f"promised {promised.remove_metadata()}, given {given.remove_metadata()}"


def _differing_plans(pair: Pair, request: QueryRequest) -> Iterator[str]:
    one, other = (_plan(engine, request) for engine in (pair.one, pair.other))
    if one != other:
        yield f"planned {one}, on a neighbouring table {other}"


def _of_both(pair: Pair, found: Statement, one: Ended, other: Ended) -> Iterator[str]:
    sources = pair.sources
    if sources[0].scopes_read != sources[1].scopes_read:
        yield "other columns were read of a neighbouring table"
    if pair.moved is not None:
        if pair.moved.missed or pair.moved.kept:
            yield "other charges were made on a neighbouring table with the same answers"
        if one.shown != other.shown:
            yield f"shown {one.shown}, and on a neighbouring table {other.shown}"
    elif one.follows_answers or other.follows_answers:
        return
    if one.decision != other.decision:
        yield f"decided {one.decision}, and on a neighbouring table {other.decision}"
    if found.has_public_keys and one.release is not None and other.release is not None:
        keys = [each.data.select(range(found.n_keys)) for each in (one.release, other.release)]
        if not keys[0].equals(keys[1]):
            yield "other groups are shown of a neighbouring table"


def _against_duckdb(
    found: Statement, request: QueryRequest, data: pa.Table, database: duckdb.DuckDBPyConnection
) -> Iterator[str]:
    ignored = [name for name in data.column_names if name.startswith("c") and name[1:].isdigit()]
    try:
        expected = oracle_rows(database, found.for_duckdb, ignored)
    except duckdb.ConversionException:
        return  # keys of unlike types, in rows that HAVING left out before they were compared
    except duckdb.Error as error:
        yield f"DuckDB: {error}\n  {found.for_duckdb}"
        return
    got = rows_of(data, ignored)
    if found.has_formula:
        expected, divisors = _without_divisors(found, expected)
        lost = _cells_of_small_divisors(found, request, expected, divisors)
        got, expected = _without_ratios_of_nothing(got, expected, found.n_keys, lost)
    if not (same_sequence if found.is_ordered else same_rows)(got, expected):
        differing = [pair for pair in zip(got, expected, strict=False) if pair[0] != pair[1]]
        shown = differing[:3] or (got[-2:], expected[-2:])
        yield f"{len(got)} rows for {len(expected)}; {shown}\n  {found.for_duckdb}"


def _without_divisors(
    found: Statement, rows: list[Row]
) -> tuple[list[Row], list[dict[int, float]]]:
    """DuckDB's rows without the divisors that are their last columns, and these, by aggregate."""
    places = [place for place, one in enumerate(found.aggregates) if one.divisor is not None]
    divisors = []
    for row in rows:
        values = [
            value if isinstance(value, float) else 0.0 for value in row[len(row) - len(places) :]
        ]
        divisors.append(dict(zip(places, values, strict=True)))
    return [row[: len(row) - len(places)] for row in rows], divisors


def _cells_of_small_divisors(
    found: Statement, request: QueryRequest, rows: list[Row], divisors: list[dict[int, float]]
) -> set[tuple[Row, int]]:
    """The rows' keys and the places of formulas that may be NULL, as their divisors are small.

    A formula is NULL where its divisor is not above a stated number of its own half-widths, which
    are no wider than what was asked for. Where epsilon was asked for, they may be anything.
    """
    asked = [float(width) for width in re.findall(r"half_width => (\d+)", request.sql)]
    width = max(WIDTH_RECORDS_MAX, request.target.half_width or 0.0, *asked)
    if "epsilon =>" in request.sql:
        width = math.inf
    lost = set()
    for row, of_row in zip(rows, divisors, strict=True):
        for place, divisor in of_row.items():
            is_count = (found.aggregates[place].divisor or "").startswith(COUNTS)
            largest = 1.0 if is_count else LARGEST_NUMBER
            if abs(divisor) <= DIVISOR_WIDTHS * width * largest:
                lost.add((row[: found.n_keys], found.n_keys + place))
    return lost


def _without_ratios_of_nothing(
    got: list[Row], expected: list[Row], n_keys: int, lost: set[tuple[Row, int]]
) -> tuple[list[Row], list[Row]]:
    """The rows without the numbers that DuckDB says are NULL, or Tacit rightly does.

    A formula that divides by zero is NULL, and any number where rounding has moved the zero. One
    of the cells that are `lost` may be NULL, or what DuckDB says.
    """
    nothing = {
        (row[:n_keys], place)
        for row in expected
        for place, value in enumerate(row)
        if value is None and place >= n_keys
    }
    nothing |= lost & {
        (row[:n_keys], place) for row in got for place, value in enumerate(row) if value is None
    }

    def without(rows: list[Row]) -> list[Row]:
        return [
            tuple(None if (row[:n_keys], place) in nothing else v for place, v in enumerate(row))
            for row in rows
        ]

    return without(got), without(expected)


def ask(engine: Engine, request: QueryRequest) -> Ended:
    """Ask, and see what is charged."""
    before = spent(engine)
    release, refusal = None, None
    try:
        release = engine.answer(request)
    except Refused as refused:
        refusal = refused
    return Ended(request.sql, release, refusal, spent(engine) - before)


def _plan(engine: Engine, request: QueryRequest) -> object:
    """What is planned for a statement, or why it is refused."""
    try:
        return engine.explain(request).data.to_pylist()
    except Refused as refused:
        return refused.explain()
