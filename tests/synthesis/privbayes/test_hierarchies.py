"""Coarser views of columns: neighbours merged in pairs, and unordered levels never merged."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthesis.privbayes.network import N_COARSEST, layered_attribute, plain_attribute
from synthesis.tables import Column


@given(st.integers(0, 300), st.integers(0, 2))
def test_each_view_merges_neighbours_of_the_one_before_and_nothing_else(
    n_ordered: int, n_apart: int
) -> None:
    if n_ordered + n_apart == 0:
        return
    column = Column("c", n_ordered + n_apart, n_ordered)
    attribute = layered_attribute(column)
    assert attribute.views[0].labels.tolist() == list(range(column.size))
    for power, view in enumerate(attribute.views):
        ordered, apart = view.labels[:n_ordered], view.labels[n_ordered:]
        assert ordered.tolist() == [level // 2**power for level in range(n_ordered)]
        first = int(ordered[-1]) + 1 if n_ordered else 0
        assert apart.tolist() == list(range(first, first + n_apart))
    n_coarsest = attribute.views[-1].n_groups - n_apart
    assert n_coarsest <= N_COARSEST
    assert n_coarsest == n_ordered or n_coarsest >= N_COARSEST - 1


@pytest.mark.parametrize("column", [Column("c", 200), Column("c", 5, 4), Column("c", 1)])
def test_unordered_columns_and_short_ones_have_one_view(column: Column) -> None:
    (view,) = layered_attribute(column).views
    assert view.labels.tolist() == np.arange(column.size).tolist()


def test_a_plain_column_has_one_view() -> None:
    assert plain_attribute(Column("c", 90, 88)).parent_sizes == (90,)
