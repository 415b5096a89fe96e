"""The tables of the benchmark of synthesis: what it compares with is what the gate measures."""

import numpy as np
import pytest

from benchmarks.marginal_distance import counted
from benchmarks.synthesis_share import made_up
from benchmarks.synthesis_tables import BenchTable, example, positions
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from proxy.synthetic_tables.models import decoded
from tests.support.groupings import each


@pytest.fixture(scope="module")
def adult() -> BenchTable:
    return example()


def test_rows_in_plain_sight_have_the_counts_that_the_source_has(adult: BenchTable) -> None:
    rows = adult.rows()
    source = DuckDbSource(adult.schema, SourceLocation(path=adult.path))
    for scope in (("age",), ("capital_gain", "native_country"), ("education", "race")):
        found = source.measure(each(adult.schema, *scope))
        sizes = adult.schema.sizes(scope)
        exact = np.zeros(sizes, dtype=np.int64)
        exact[found.levels] = found.counts
        places = [adult.place(name) for name in scope]
        assert np.array_equal(counted(rows, adult.sizes, places), exact.ravel())


def test_values_drawn_from_positions_lead_back_to_them(adult: BenchTable) -> None:
    rows = adult.rows()[:1000]
    drawn = decoded(adult.schema.axes, rows.astype(np.int32), np.random.default_rng(1))
    assert np.array_equal(positions(adult.schema, drawn), rows)


def test_made_up_tables_hold_levels_of_their_columns_and_differ() -> None:
    for seed in range(3):
        first, other = (made_up(np.random.default_rng(one)) for one in (seed, seed + 10))
        assert first.rows.shape != other.rows.shape
        assert (first.rows >= 0).all()
        assert (first.rows.max(axis=0) < first.sizes).all()
        again = made_up(np.random.default_rng(seed))
        assert np.array_equal(first.rows, again.rows)
