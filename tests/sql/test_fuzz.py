"""Generated SQL finds no crash, no wrong answer, and nothing that depends on any one record.

A find names its seed and the statement's place: `asked(seed, place)` in fuzzing.py makes it again.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from accountant.gate.known_rows import Snapshot
from cube.refusals import UnsupportedSql
from cube.schema import Schema
from planner.lowering.summands import Product, summed
from planner.measuring.candidates import Strategy
from proxy.api.requests import QueryRequest, QueryResult
from proxy.engine.answers.relations import relation
from proxy.engine.answers.results import AnsweredPart
from proxy.engine.engine import Engine
from tests.sql import world
from tests.sql.fuzz_worlds import N_RECORDS
from tests.sql.fuzzing import Find, Tally, ask, finds
from tests.support.fakes import KnownTable, NoNoise

# Of the first 110, some of those that take least time, and some that take more.
_QUICK = "62 59 41 1 48 73 56 57 63 45 17 68 14 40 7 32 98 78 79 51 67 86 66 39 70"
SEEDS = tuple(map(int, _QUICK.split()))
N_STATEMENTS_QUICK = 4
SECONDS_LONG = 600
FIRST_SEED_LONG = 1000
SEEDS_TO_CATCH = SEEDS[:14]

Breaking = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(autouse=True)
def _advice_takes_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal says all of its advice, however busy the machine is."""
    monkeypatch.setattr("proxy.engine.search.SECONDS_MAX", 600.0)


def all_finds(seeds: Sequence[int], folder: Path, tally: Tally) -> Iterator[Find]:
    for seed in seeds:
        yield from finds(seed, folder, tally, N_STATEMENTS_QUICK)


def assert_nothing_is_found(seeds: Sequence[int], folder: Path) -> None:
    tally = Tally()
    found = list(all_finds(seeds, folder, tally))
    assert not found, "\n".join(map(str, found))
    n_statements = len(seeds) * N_STATEMENTS_QUICK
    assert tally.answered + tally.refused == n_statements
    assert tally.answered > tally.refused
    assert tally.compared > tally.answered // 3
    assert tally.held_against_a_neighbour + tally.with_the_same_answers == n_statements
    assert min(tally.held_against_a_neighbour, tally.with_the_same_answers) > len(seeds)


def test_twenty_statements_find_nothing(tmp_path: Path) -> None:
    assert_nothing_is_found(SEEDS[:5], tmp_path)


@pytest.mark.slow
def test_a_hundred_statements_find_nothing(tmp_path: Path) -> None:
    assert_nothing_is_found(SEEDS, tmp_path)


@pytest.mark.slow
def test_ten_minutes_of_statements_find_nothing(tmp_path: Path) -> None:
    tally, seed = Tally(), FIRST_SEED_LONG
    found: list[Find] = []
    end = time.monotonic() + SECONDS_LONG
    while time.monotonic() < end:
        found += finds(seed, tmp_path, tally)
        seed += 1
    print(f"\n{tally}, seeds {FIRST_SEED_LONG} to {seed - 1}")  # noqa: T201 - the figure
    assert not found, "\n".join(map(str, found))


def sums_are_one_in_a_thousand_too_large(patch: pytest.MonkeyPatch) -> None:
    right = summed

    def wrong(*arguments: object) -> list[Product]:
        node, scale, conditions, schema = arguments
        assert isinstance(scale, Fraction)
        assert isinstance(schema, Schema)
        return right(node, scale * Fraction(1001, 1000), conditions, schema)  # type: ignore[arg-type]  # as it was called

    patch.setattr("planner.lowering.linear.summed", wrong)


def null_counts_as_if_it_were_there(patch: pytest.MonkeyPatch) -> None:
    def wrong(
        _expression: object, scale: Fraction, conditions: tuple[object, ...], _schema: Schema
    ) -> Product:
        return Product(scale, (), conditions)  # type: ignore[arg-type]  # as it was called

    patch.setattr("planner.lowering.linear.counted", wrong)


def an_odd_answer_is_refused(patch: pytest.MonkeyPatch) -> None:
    right = Engine.answer

    def wrong(engine: Engine, request: QueryRequest) -> QueryResult:
        release = right(engine, request)
        total = sum(sum(column.to_pylist()) for column in _never_null(release.data))
        if round(total) % 2:
            raise UnsupportedSql("That is odd.")
        return release

    patch.setattr(Engine, "answer", wrong)


def an_odd_number_of_records_is_refused(patch: pytest.MonkeyPatch) -> None:
    right = Engine.answer

    def wrong(engine: Engine, request: QueryRequest) -> QueryResult:
        release = right(engine, request)
        gate = engine._tables[world.SCHEMA.table].gate
        assert isinstance(gate._source, Snapshot)
        source = gate._source.rows(gate.history)
        assert isinstance(source, KnownTable)
        if len(source.records) % 2:
            raise UnsupportedSql("That is odd.")
        return release

    patch.setattr(Engine, "answer", wrong)


def empty_groups_are_left_out(patch: pytest.MonkeyPatch) -> None:
    def wrong(answered: AnsweredPart) -> pa.Table:
        data = relation(answered)
        for column in _never_null(data):
            data = data.filter([abs(value) > 1e-6 for value in column.to_pylist()])
            break
        return data

    patch.setattr("proxy.engine.engine.relation", wrong)


def _never_null(data: pa.Table) -> list[pa.ChunkedArray]:
    return [
        column
        for column in data.columns
        if pa.types.is_floating(column.type) and not column.null_count
    ]


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (sums_are_one_in_a_thousand_too_large, "rows for"),
        (null_counts_as_if_it_were_there, "rows for"),
        (an_odd_answer_is_refused, "neighbouring"),
        (an_odd_number_of_records_is_refused, "shown ("),
        (empty_groups_are_left_out, "rows for"),
    ],
)
def test_a_broken_engine_is_caught_within_sixty_statements(
    break_it: Breaking, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    found = all_finds(SEEDS_TO_CATCH, tmp_path, Tally())
    assert any(says in one.wrong for one in found)


def test_the_seeds_take_turns_with_the_number_of_records() -> None:
    assert {N_RECORDS[seed % len(N_RECORDS)] for seed in SEEDS} == {0, 1, 40, 2000}


def charges_of_asking_twice(folder: Path, strategy: Strategy) -> list[int]:
    """How many there are after each, of a statement whose parts are estimated from each other."""
    heavy = "CASE WHEN bmi >= 25 THEN 'heavy' END"
    sql = f"""
        SELECT {heavy} AS weight,
               AVG(age + visits) FILTER (WHERE NOT insured AND admitted >= '2023-12-01') AS a,
               COUNT(*) FILTER (WHERE insured AND city = 'Bergen') AS b,
               COUNT(*) FILTER (WHERE city = 'Bergen') AS c
        FROM patients GROUP BY ROLLUP ({heavy})"""  # noqa: S608 - fixed words
    folder.mkdir()
    source = KnownTable(world.SCHEMA, world.positions())
    with world.patients_engine(folder, source, NoNoise(), strategy=strategy) as engine:
        payments = engine._tables["patients"].gate.payments
        numbers = []
        for _ in range(2):
            ask(engine, QueryRequest(sql=sql))
            numbers.append(len(payments()))
    return numbers


@pytest.mark.parametrize("strategy", [Strategy.CELLS, Strategy.DYADIC])
def test_what_is_bought_for_one_part_leaves_every_other_within_its_target(
    strategy: Strategy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # `auto` buys these parts so narrowly that none changes what another is estimated from.
    assert charges_of_asking_twice(tmp_path / "right", strategy) == [1, 1]
    monkeypatch.setattr("planner.measuring.choose.N_LOOKS_MAX", 0)
    first, again = charges_of_asking_twice(tmp_path / "wrong", strategy)
    assert first == again > 1, "what the plan forgot was bought by a second one"
