"""Cells as a grouping counts them: DuckDB's counts against counting row by row."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.grouping import NOT_COUNTED, Grouping, LevelRuns
from cube.axis import IntegerAxis
from cube.schema import Schema
from proxy.sources import duckdb_source
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from tests.support.examples import examples

SIZES = {"a": 300, "b": 200}
AXES = tuple(IntegerAxis(name=name, low=0, high=size - 1) for name, size in SIZES.items())
SCHEMA = Schema(table="t", axes=AXES, n_records_max=10_000)
RECORDS = np.random.default_rng(5).integers(0, list(SIZES.values()), (4000, 2))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> DuckDbSource:
    path = tmp_path_factory.mktemp("groupings") / "t.parquet"
    pq.write_table(pa.table(dict(zip(SIZES, RECORDS.T, strict=True))), path)
    return DuckDbSource(SCHEMA, SourceLocation(path=path))


@st.composite
def runs(draw: st.DrawFn, name: str) -> LevelRuns:
    """A few runs, or more than a CASE is written for."""
    size = SIZES[name]
    n_runs = draw(st.sampled_from([1, 2, 5, 90]))
    inner = draw(
        st.lists(st.integers(1, size - 1), unique=True, min_size=n_runs - 1, max_size=n_runs - 1)
    )
    counted_as = draw(
        st.lists(st.integers(NOT_COUNTED, size - 1), min_size=n_runs, max_size=n_runs)
    )
    starts = np.array([0, *sorted(inner)], dtype=np.int64)
    return LevelRuns(size, starts, np.array(counted_as, dtype=np.int64))


@settings(max_examples=examples(60), deadline=None)
@given(st.data(), st.sampled_from([(), ("a",), ("b",), ("a", "b")]))
def test_cells_are_counted_as_row_by_row(
    source: DuckDbSource, data: st.DataObject, scope: tuple[str, ...]
) -> None:
    grouping = Grouping(scope, tuple(data.draw(runs(name)) for name in scope))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb_source, "N_CELLS_EACH_MAX", 0)
        found = source.measure(grouping)
    expected: Counter[tuple[int, ...]] = Counter()
    for record in RECORDS.tolist():
        row = dict(zip(SIZES, record, strict=True))
        cell = tuple(
            int(one.at(np.array([row[name]]))[0])
            for name, one in zip(scope, grouping.runs, strict=True)
        )
        if NOT_COUNTED not in cell:
            expected[cell] += 1
    cells = zip(*(column.tolist() for column in found.levels), strict=True) if scope else [()]
    assert dict(zip(cells, found.counts.tolist(), strict=True)) == expected
    assert found.counts.size <= grouping.n_cells_max


def test_few_cells_are_counted_once_for_all_groupings(source: DuckDbSource) -> None:
    some = [LevelRuns(300, np.array([0, n]), np.array([0, n])) for n in (5, 7)]
    first, second = (source.measure(Grouping(("a",), (one,))) for one in some)
    assert first is second
    assert first.counts.size == np.unique(RECORDS[:, 0]).size


def test_classes_of_many_cells_are_counted_once_each(source: DuckDbSource) -> None:
    every = LevelRuns.of_each(200)
    some = [LevelRuns(300, np.array([0, n]), np.array([0, n])) for n in (5, 7, 5)]
    found = [source.measure(Grouping(("a", "b"), (one, every))) for one in some]
    assert found[0] is found[2] is not found[1]
    assert set(found[1].levels[0].tolist()) == {0, 7}
