"""Numbers of levels say so where noisy counts show that they miss levels, and are NULL where most.

The rows are those of `tests/sql/world.py`, counted without noise, so what is told can be compared
with counts of the same rows in plain sight.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from planner.workload import RequestedTarget
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
