"""Products of partitions: the same groups, whether they are kept cell by cell or along the axes."""

import numpy as np
import pytest
from numpy.typing import NDArray

from cube.classes import Tiles
from cube.encoding import decode_block, encode_block
from cube.query import QueryBlock, counting
from proxy.synthetic_tables import spending as module
from proxy.synthetic_tables.spending import N_CELLS_LISTED_MAX, product_partition

LABELS = {
    "a": np.array([2, 0, 0, 1, 2], dtype=np.int64),
    "b": np.array([1, 1, 0], dtype=np.int64),
    "c": np.array([0, 1], dtype=np.int64),
}


@pytest.mark.parametrize("scope", [("a",), ("a", "b"), ("b", "c"), ("a", "b", "c")])
def test_groups_are_numbered_with_the_last_axis_fastest(
    monkeypatch: pytest.MonkeyPatch, scope: tuple[str, ...]
) -> None:
    listed = product_partition(scope, LABELS)
    monkeypatch.setattr(module, "N_CELLS_LISTED_MAX", 1)
    stored = product_partition(scope, LABELS)
    n_groups = [int(LABELS[name].max()) + 1 for name in scope]
    expected = np.ravel_multi_index(np.ix_(*(LABELS[name] for name in scope)), n_groups)
    for partition in (listed, stored):
        assert np.array_equal(partition.labels, expected)
        assert partition.n_groups == np.prod(n_groups)
        block = QueryBlock(counting(), partition)
        again = decode_block(encode_block(block)).partition
        assert again is not None
        assert np.array_equal(again.labels, expected)


def test_what_is_kept_of_many_cells_is_as_much_as_there_are_groups() -> None:
    def halves(size: int) -> NDArray[np.int64]:
        return np.repeat(np.arange(2, dtype=np.int64), size // 2)

    narrow, wide = 2, N_CELLS_LISTED_MAX
    few = product_partition(("a", "b"), {"a": halves(narrow), "b": halves(wide // narrow)})
    many = product_partition(("a", "b"), {"a": halves(narrow), "b": halves(wide)})
    assert few.n_stored == N_CELLS_LISTED_MAX
    assert isinstance(many.groups, Tiles)
    assert many.n_stored == 4 + 2 + 2
