"""Numbers of levels say so where noisy counts show that they miss levels, and are NULL where most.

The rows are those of `tests/sql/world.py`, counted without noise, so what is told can be compared
with counts of the same rows in plain sight.
"""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from planner.workload import Fallback, RequestedTarget
from proxy.api.requests import QueryRequest
from proxy.engine.engine import Engine
from tests.sql import world
from tests.support.fakes import KnownTable, NoNoise

NOISY = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(extremes => 'noisy')"


def ages() -> Counter[int]:
    """How many records have each age."""
    place = [axis.name for axis in world.SCHEMA.axes].index("age")
    levels = world.SCHEMA.by_name["age"].levels
    return Counter(int(str(levels[row[place]])) for row in world.positions().tolist())


@pytest.fixture
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    source = KnownTable(world.SCHEMA, world.positions())
    with world.patients_engine(tmp_path_factory.mktemp("missed"), source, NoNoise()) as engine:
        yield engine


def asked(engine: Engine, sql: str, half_width: float) -> tuple[list[tuple[Any, ...]], list[str]]:
    """The rows, and the notes on missed levels."""
    target = RequestedTarget(half_width=half_width)
    result = engine.answer(QueryRequest(sql=sql, target=target))
    assert result.receipt is not None
    notes = [note for note in result.receipt.notes if "misses levels" in note]
    return [tuple(row.values()) for row in result.data.to_pylist()], notes


def test_a_count_that_misses_most_records_is_null(engine: Engine) -> None:
    rows, (note,) = asked(engine, "SELECT COUNT(DISTINCT cost) AS n FROM patients", 25)
    assert rows == [(None,)]
    assert "NULL" in note
    assert "half_width" in note


def ends(engine: Engine, sql: str, half_width: float) -> list[tuple[object, float, float]]:
    """The number of each row, and the ends of its interval."""
    target = RequestedTarget(half_width=half_width)
    result = engine.answer(QueryRequest(sql=sql, target=target))
    assert result.receipt is not None
    (column,) = result.receipt.columns
    name = column.name
    shown = [row[name] for row in result.data.to_pylist()]
    return list(zip(shown, column.low, column.high, strict=True))


@pytest.mark.parametrize("half_width", [0.1, 8, 12, 16, 30])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(DISTINCT age) AS n FROM patients",
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT age FROM patients) AS t",
        "SELECT COUNT(*) FILTER (WHERE age > 0) AS n FROM (SELECT age FROM patients GROUP BY 1) t",
    ],
)
def test_a_number_is_shown_if_half_of_what_may_occur_was_found(
    engine: Engine, sql: str, half_width: float
) -> None:
    ((shown, low, high),) = ends(engine, sql, half_width)
    assert low <= len(ages()) <= high <= world.SCHEMA.by_name["age"].size
    assert shown == (low if 2 * low >= high else None)
    is_known = half_width < 1
    assert (low == high) == is_known


def test_a_number_that_is_null_for_want_of_levels_says_of_how_many(engine: Engine) -> None:
    sql = "SELECT COUNT(DISTINCT age) AS n FROM patients"
    ((shown, low, high),) = ends(engine, sql, 16)
    assert shown is None
    assert low > 0
    _, (note,) = asked(engine, sql, 16)
    assert f"it is NULL, where {low:.0f} of {high:.0f} levels that may occur were found" in note


def test_the_interval_of_a_number_can_be_asked_for_in_sql(engine: Engine) -> None:
    sql = (
        "SELECT COUNT(DISTINCT age) AS n, DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n) AS high, "
        "DP_STDERR(n) AS e, SUM(DISTINCT age) AS s FROM patients"
    )
    target = RequestedTarget(half_width=12)
    result = engine.answer(QueryRequest(sql=sql, target=target))
    (row,) = result.data.to_pylist()
    assert result.receipt is not None
    count, total = result.receipt.columns
    assert (row["low"], row["high"]) == (count.low[0], count.high[0])
    assert row["e"] is None
    assert total.low[0] <= sum(ages()) <= total.high[0]


def test_what_the_history_does_not_know_is_no_number_of_levels(engine: Engine) -> None:
    """It was 0, as if counts that were never bought had been 0."""
    sql = "SELECT COUNT(DISTINCT age) AS n, MODE(age) AS m FROM patients"
    target = RequestedTarget(
        half_width=0.01, epsilon_cap=Fraction(1, 10**6), fallback=Fallback.HISTORY
    )
    result = engine.answer(QueryRequest(sql=sql, target=target))
    assert result.receipt is not None
    (column,) = result.receipt.columns
    assert result.data.to_pylist() == [{"n": None, "m": None}]
    assert column.low == (0.0,)
    assert column.high[0] >= len(ages())
    assert any("nothing is known of some levels" in note for note in result.receipt.notes)


def test_a_count_that_misses_some_records_says_how_many(engine: Engine) -> None:
    ((n,),), (note,) = asked(engine, "SELECT COUNT(DISTINCT age) AS n FROM patients", 8)
    sizes = sorted(ages().values())
    assert 0 < n < len(sizes)
    smallest = sizes[: len(sizes) - n]
    assert f"about {sum(smallest)} of {world.N_RECORDS} records" in note
    assert "at least" in note


def test_the_groups_that_miss_levels_are_numbered(engine: Engine) -> None:
    sql = "SELECT sex, COUNT(DISTINCT cost) AS n, SUM(DISTINCT cost) AS s FROM patients GROUP BY 1"
    rows, notes = asked(engine, sql, 25)
    assert [row[1:] for row in rows] == [(None, None)] * 3
    assert [note.split(" misses")[0] for note in notes] == [
        "COUNT(DISTINCT cost)",
        "SUM(DISTINCT cost)",
    ]
    assert all("in 3 of its 3 groups" in note for note in notes)


@pytest.mark.parametrize("x", ["city", "sex", '"Blood Type"'])
def test_nothing_is_said_where_no_level_is_missed(engine: Engine, x: str) -> None:
    _, notes = asked(engine, f"SELECT COUNT(DISTINCT {x}) AS n, MODE({x}) FROM patients", 25)  # noqa: S608 - words of this test
    assert notes == []


def test_records_beyond_the_noisy_extremes_are_told(engine: Engine) -> None:
    sql = f"{NOISY} MIN(age) AS least, MAX(age) AS most FROM patients"
    ((least, most),), notes = asked(engine, sql, 8)
    below = sum(n for age, n in ages().items() if age < least)
    told = [below, sum(n for age, n in ages().items() if age > most)]
    assert all(f"about {n} of 2000" in note for n, note in zip(told, notes, strict=True))
    assert "below" in notes[0]
    assert "above" in notes[1]


def test_a_mode_that_was_found_is_not_doubted_for_smaller_levels(engine: Engine) -> None:
    ((mode,),), notes = asked(engine, "SELECT MODE(age) AS m FROM patients", 8)
    assert mode is not None
    assert notes == []


def test_a_mode_that_no_level_shows_is_null_and_says_why(engine: Engine) -> None:
    rows, (note,) = asked(engine, "SELECT MODE(cost) AS m FROM patients", 25)
    assert rows == [(None,)]
    assert "NULL" in note


def test_a_group_without_records_counts_no_level(engine: Engine) -> None:
    sql = "SELECT age > 200 AS old, COUNT(DISTINCT city) AS n FROM patients GROUP BY 1"
    rows, notes = asked(engine, sql, 25)
    assert rows == [(False, 5)]
    assert notes == []
    sql = "SELECT COUNT(DISTINCT city) FILTER (WHERE age > 200) AS n FROM patients"
    assert asked(engine, sql, 25) == ([(0,)], [])
