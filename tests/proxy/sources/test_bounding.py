"""Which rows of a unit are kept: at most so many, and decided by that unit's rows and the key."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from cube.axis import CategoryAxis, IntegerAxis
from cube.refusals import ConfigurationInvalid
from cube.schema import RowsByLevel, Schema
from proxy.sources.bounding import RowsRead
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from tests.support.examples import examples
from tests.support.groupings import each

KEY = b"k" * 32
AGE = IntegerAxis(name="age", low=0, high=9)
SHOP = CategoryAxis(name="shop", values=("a", "b", "c"))
ROWS = st.lists(
    st.tuples(st.integers(1, 4), st.integers(-1, 9), st.sampled_from("abc")), max_size=30
)

Row = tuple[int, int, str]  # a unit, an age, which may have no level, and a shop


def schema(n_rows: int, unit: str | None = "person", by: RowsByLevel | None = None) -> Schema:
    return Schema(
        table="orders",
        axes=(AGE, SHOP),
        n_records_max=100,
        unit=unit,
        rows_per_unit_max=n_rows,
        rows_per_unit_max_by=by,
    )


def kept(
    folder: Path,
    rows: list[Row],
    n_rows: int,
    key: bytes = KEY,
    by: RowsByLevel | None = None,
) -> Counter[Any]:
    """How often each cell is kept."""
    path = folder / "orders.csv"
    lines = [f"{person},{age},{shop}" for person, age, shop in rows]
    path.write_text("\n".join(["person,age,shop", *lines]) + "\n")
    source = DuckDbSource(schema(n_rows, by=by), SourceLocation(path=path), RowsRead(key))
    found = source.measure(each(schema(n_rows), "age", "shop"))
    return Counter(
        {
            (int(age), int(shop)): int(n)
            for age, shop, n in zip(*found.levels, found.counts, strict=True)
        }
    )


ONCE = settings(
    deadline=None,
    max_examples=examples(25),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@ONCE
@given(ROWS, st.integers(2, 4))
def test_as_many_rows_of_each_unit_are_kept_as_are_allowed(
    tmp_path: Path, rows: list[Row], n_rows: int
) -> None:
    """Those without a level do not count. The table without its other units says the same."""
    rows = [*rows, (9, 0, "a")]
    of_unit: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        of_unit[row[0]].append(row)
    alone = [kept(tmp_path, some, n_rows) for some in of_unit.values()]
    for some, found in zip(of_unit.values(), alone, strict=True):
        with_levels = Counter((age, "abc".index(shop)) for _, age, shop in some if age >= 0)
        assert found.total() == min(n_rows, with_levels.total())
        assert found <= with_levels
    assert kept(tmp_path, rows, n_rows) == sum(alone, Counter())


@ONCE
@given(ROWS, st.integers(2, 4), st.integers(1, 2))
def test_so_many_are_kept_at_each_level_and_of_these_so_many_in_all(
    tmp_path: Path, rows: list[Row], n_rows: int, n_of_level: int
) -> None:
    """For each unit by itself; what is kept of one does not depend on the others."""
    if n_of_level == n_rows:
        return
    by = RowsByLevel("age", n_of_level)
    rows = [*rows, (9, 0, "a"), (9, 0, "b"), (9, 0, "c"), (9, 1, "a")]
    of_unit: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        of_unit[row[0]].append(row)
    alone = [kept(tmp_path, some, n_rows, by=by) for some in of_unit.values()]
    for some, found in zip(of_unit.values(), alone, strict=True):
        ages = Counter(age for _, age, _ in some if age >= 0)
        at_level = {age: min(n, n_of_level) for age, n in ages.items()}
        assert found.total() == min(n_rows, sum(at_level.values()))
        assert found <= Counter((age, "abc".index(shop)) for _, age, shop in some)
        for age in range(10):
            assert sum(n for (own, _), n in found.items() if own == age) <= at_level.get(age, 0)
    assert kept(tmp_path, rows, n_rows, by=by) == sum(alone, Counter())


@ONCE
@given(ROWS, st.integers(2, 4), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(
    tmp_path: Path, rows: list[Row], n_rows: int, shuffling: Any
) -> None:
    rows = [*rows, (9, 0, "a")]
    shuffled = rows.copy()
    shuffling.shuffle(shuffled)
    assert kept(tmp_path, rows, n_rows) == kept(tmp_path, shuffled, n_rows)


def test_another_key_keeps_other_rows_and_every_row_has_the_same_chance(tmp_path: Path) -> None:
    """Of ten rows three are kept; over 400 units each is kept 120 times, or a test in 10**6 fails.

    A version that kept the first rows, or the smallest, would keep some always and others never.
    """
    units = range(400)
    rows = [(unit, age, "a") for unit in units for age in range(10)]
    one, other = (kept(tmp_path, rows[:10], 3, key) for key in (KEY, b"l" * 32))
    assert one != other
    path = tmp_path / "many.csv"
    path.write_text("\n".join(["person,age,shop", *(f"{u},{age},{shop}" for u, age, shop in rows)]))
    many = Schema(
        table="orders", axes=(AGE, SHOP), n_records_max=2000, unit="person", rows_per_unit_max=3
    )
    source = DuckDbSource(many, SourceLocation(path=path), RowsRead(KEY))
    counts = source.measure(each(many, "age")).counts
    low, high = binom.interval(1 - 1e-7, len(units), 0.3)
    assert counts.sum() == 3 * len(units)
    assert low <= counts.min() <= counts.max() <= high


def test_a_row_without_a_unit_is_refused_and_one_of_several_is_not(tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("person,age,shop\n1,2,a\n1,3,b\n,4,a\n")
    with pytest.raises(ConfigurationInvalid, match="every row should name a unit"):
        DuckDbSource(schema(2), SourceLocation(path=path), RowsRead(KEY))
    path.write_text("person,age,shop\n1,2,a\n1,3,b\n")
    with pytest.raises(ConfigurationInvalid, match="or declare rows_per_unit_max"):
        DuckDbSource(schema(1), SourceLocation(path=path), RowsRead(KEY))


def test_a_bound_needs_a_unit_and_a_key(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="needs a unit"):
        schema(2, unit=None)
    path = tmp_path / "orders.csv"
    path.write_text("person,age,shop\n1,2,a\n")
    with pytest.raises(ValueError, match="need a key"):
        DuckDbSource(schema(2), SourceLocation(path=path))
