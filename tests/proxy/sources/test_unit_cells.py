"""The units of a snapshot: a number and a digest in place of each, and nothing of who they are."""

from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accountant.exact.unit_counts import exact_unit_counts
from cube.axis import CategoryAxis, IntegerAxis
from cube.query import Partition, QueryBlock, counting
from cube.schema import Schema
from cube.statistic import UnitCount
from proxy.sources.bounding import RowsRead
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from tests.support.examples import examples
from tests.support.groupings import each
from tests.support.loaded import database_of

KEY = b"k" * 32
AGE = IntegerAxis(name="age", low=0, high=9)
SHOP = CategoryAxis(name="shop", values=("a", "b", "c"))
ROWS = st.lists(
    st.tuples(st.integers(1, 6), st.integers(0, 9), st.sampled_from("abc")), max_size=30
)

Row = tuple[int, int, str]  # a unit, an age and a shop

ONCE = settings(
    deadline=None,
    max_examples=examples(25),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def schema(rows_max: int = 40) -> Schema:
    return Schema(
        table="orders",
        axes=(AGE, SHOP),
        n_records_max=100,
        unit="person",
        rows_per_unit_max=rows_max,
    )


def source(folder: Path, rows: list[Row], rows_max: int = 40, key: bytes = KEY) -> DuckDbSource:
    path = folder / "orders.csv"
    lines = [f"p{person},{age},{shop}" for person, age, shop in rows]
    path.write_text("\n".join(["person,age,shop", *lines]) + "\n")
    return DuckDbSource(schema(rows_max), SourceLocation(path=path), RowsRead(key))


def block(*names: str) -> QueryBlock:
    shape = schema().sizes(names)
    if not names:
        return QueryBlock(counting())
    return QueryBlock(
        counting(), Partition(names, np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape))
    )


def counted(found: DuckDbSource, asked: UnitCount, rows_max: int = 40) -> list[int]:
    cells = found.measure_units(each(schema(rows_max), *asked.block.scope))
    return exact_unit_counts(asked, asked.reach(rows_max), cells, schema(rows_max))


@ONCE
@given(ROWS, st.sampled_from([(), ("age",), ("shop",), ("age", "shop")]))
def test_units_are_counted_as_duckdb_counts_them(
    tmp_path: Path, rows: list[Row], names: tuple[str, ...]
) -> None:
    rows = [*rows, (9, 0, "a")]
    found = counted(source(tmp_path, rows), UnitCount(block(*names), 40))
    written = duckdb.read_csv(str(tmp_path / "orders.csv"))
    again = written.aggregate("count(DISTINCT person)", ", ".join(names)).fetchall()
    assert sorted(one for one in found if one) == sorted(n for (n,) in again)


@ONCE
@given(ROWS, st.integers(0, 9), st.sampled_from("abc"))
def test_another_unit_changes_nothing_of_which_groups_of_others_count(
    tmp_path: Path, rows: list[Row], age: int, shop: str
) -> None:
    """Its number comes before all others, so that these have others than before."""
    rows = [*rows, (9, 3, "a"), (9, 4, "b")]
    asked = UnitCount(block("age"), 1)
    before = counted(source(tmp_path, rows, 20), asked, 20)
    after = counted(source(tmp_path, [(0, age, shop), *rows], 20), asked, 20)
    assert [more - fewer for more, fewer in zip(after, before, strict=True)] == [
        int(level == age) for level in range(10)
    ]


@ONCE
@given(ROWS, st.integers(2, 4))
def test_units_of_which_rows_are_left_out_say_so(
    tmp_path: Path, rows: list[Row], rows_max: int
) -> None:
    """And no other: rows without a level do not count."""
    n_rows = Counter(person for person, _, _ in rows)
    rows = [*rows, *[(8, 11, "a")] * 5, (8, 1, "a")]
    found = source(tmp_path, rows, rows_max)
    cut = UnitCount(block(), 40, only_cut=True)
    assert counted(found, cut, rows_max) == [sum(n > rows_max for n in n_rows.values())]


def test_digests_depend_on_the_unit_and_the_key_alone(tmp_path: Path) -> None:
    by_age = each(schema(), "age")
    first = source(tmp_path, [(1, 0, "a"), (2, 0, "b")]).measure_units(by_age)
    again = source(tmp_path, [(3, 5, "a"), (2, 7, "c"), (2, 7, "c")]).measure_units(by_age)
    other = source(tmp_path, [(2, 0, "b"), (1, 0, "a")], key=b"l" * 32).measure_units(by_age)
    assert len(set(first.digests.tolist()) & set(again.digests.tolist())) == 1
    assert not set(first.digests.tolist()) & set(other.digests.tolist())
    assert again.units.tolist() in ([0, 1], [1, 0])
    assert min(first.digests) >= 0
    assert max(first.digests) < 2**60
    assert repr(first) == "UnitCells(<private>)"


def test_whose_a_row_is_is_part_of_what_the_ledger_began_with(tmp_path: Path) -> None:
    """The cells are the same, but two rows have changed hands."""
    first = source(tmp_path, [(1, 0, "a"), (1, 1, "a"), (2, 2, "a"), (2, 3, "a")])
    other = source(tmp_path, [(1, 0, "a"), (2, 1, "a"), (1, 2, "a"), (2, 3, "a")])
    again = source(tmp_path, [(2, 3, "a"), (1, 1, "a"), (2, 2, "a"), (1, 0, "a")])
    assert first.rows_fingerprint(KEY) != other.rows_fingerprint(KEY)
    assert first.rows_fingerprint(KEY) == again.rows_fingerprint(KEY)


def test_the_snapshot_has_no_unit_in_it(tmp_path: Path) -> None:
    """Only a number and a digest; a table with one row a unit has neither, and counts rows."""
    found = source(tmp_path, [(1, 0, "a"), (1, 1, "b")])
    columns = database_of(found).execute("DESCRIBE cells").fetchall()
    assert [(name, kind) for name, kind, *_ in columns][2:] == [
        ("unit_number", "BIGINT"),
        ("unit_digest", "BIGINT"),
        ("unit_was_cut", "BIGINT"),
    ]
    single = source(tmp_path, [(1, 0, "a"), (2, 1, "b")], rows_max=1)
    assert len(database_of(single).execute("DESCRIBE cells").fetchall()) == 2
    with pytest.raises(ValueError, match="one row each"):
        single.measure_units(each(schema()))
