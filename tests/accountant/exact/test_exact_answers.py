"""Exact answers out of counts: against dense rows, and never out of counts of no possible table."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.exact.exact_answers import answer_bound, exact_answers
from accountant.gate.gate import CellCounts
from cube.axis import IntegerAxis
from cube.query import QueryBlock
from cube.schema import Schema
from tests.support.cubes import SIZES, blocks, dense_rows
from tests.support.fakes import KnownTable
from tests.support.groupings import each
from tests.support.seven_people import ADULTS, SCHEMA


@settings(deadline=None)
@given(blocks(whole=True), st.lists(st.integers(0, 71), max_size=30))
def test_exact_answers_are_the_rows_times_the_cells(block: QueryBlock, cells: list[int]) -> None:
    """Against dense rows, over every cell of a small cube."""
    axes = tuple(IntegerAxis(name=name, low=0, high=SIZES[name] - 1) for name in sorted(SIZES))
    schema = Schema(table="cube", axes=axes, n_records_max=30)
    sizes = [SIZES[name] for name in sorted(SIZES)]
    records = np.stack(np.unravel_index(np.array(cells, dtype=np.int64), sizes), axis=1)
    counts = KnownTable(schema, records.astype(np.int64)).measure(each(schema, *block.scope))
    expected = [sum((row[cell] for cell in cells), Fraction(0)) for row in dense_rows(block)]
    assert exact_answers(block, counts, schema) == expected
    assert max(map(abs, expected)) <= answer_bound(block, schema)


@pytest.mark.parametrize(
    "counts",
    [
        CellCounts((), np.array([3], dtype=np.int64)),
        CellCounts((np.array([6], dtype=np.int64),), np.array([3], dtype=np.int64)),
        CellCounts((np.array([-1], dtype=np.int64),), np.array([3], dtype=np.int64)),
        CellCounts((np.array([0], dtype=np.int64),), np.array([-3], dtype=np.int64)),
        CellCounts((np.array([0], dtype=np.int64),), np.array([1001], dtype=np.int64)),
        CellCounts((np.zeros(4, dtype=np.int64),), np.full(4, 2**62, dtype=np.int64)),
    ],
)
def test_counts_of_no_possible_table_are_not_computed_with(counts: CellCounts) -> None:
    with pytest.raises(ValueError, match="the source") as raised:
        exact_answers(ADULTS, counts, SCHEMA)
    assert not any(digit in str(raised.value) for digit in "0123456789")


def test_malformed_counts_cannot_be_built() -> None:
    with pytest.raises(TypeError, match="int64"):
        CellCounts((), np.array([1], dtype=np.int32))
    with pytest.raises(ValueError, match="each occupied cell needs"):
        CellCounts((np.zeros(2, dtype=np.int64),), np.zeros(3, dtype=np.int64))
