"""Splitting a partition where a block touches it gives the common refinement, however often."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from inference.blue.atoms import CellPartition, TouchedCells

N_CELLS = 12
Labels = list[int]
blocks = st.lists(
    st.tuples(
        st.lists(st.integers(-1, 2), min_size=N_CELLS, max_size=N_CELLS),  # -1: in no row
        st.lists(st.sampled_from([1.0, 2.5]), min_size=N_CELLS, max_size=N_CELLS),
    ),
    max_size=5,
)


def touched(rows: Labels, coefficients: list[float]) -> TouchedCells:
    of_cell = np.array(rows, dtype=np.int64)
    (cells,) = (of_cell >= 0).nonzero()
    return TouchedCells(cells, of_cell[cells], np.array(coefficients)[cells])


def numbered(columns: list[Labels]) -> NDArray[np.int64]:
    """The partition by equal tuples."""
    return np.unique(np.array(columns), axis=1, return_inverse=True)[1].ravel().astype(np.int64)


@given(
    begun=st.lists(st.integers(0, 2), min_size=N_CELLS, max_size=N_CELLS),
    blocks=blocks,
    n_parts_max=st.integers(1, N_CELLS),
)
def test_what_is_split_is_the_common_refinement_of_the_blocks_that_fit(
    begun: Labels, blocks: list[tuple[Labels, list[float]]], n_parts_max: int
) -> None:
    before = numbered([begun])
    partition, columns = CellPartition(before), [before.tolist()]
    for rows, coefficients in blocks:
        values = [
            2 * row + (1 if coefficient == 1.0 else 2) if row >= 0 else 0
            for row, coefficient in zip(rows, coefficients, strict=True)
        ]
        finer = numbered([*columns, values])
        fits = int(finer.max()) < n_parts_max
        part_of = partition.part_of.copy()
        one = touched(rows, coefficients)
        if int(before.max()) < n_parts_max:  # otherwise no block is asked about
            assert partition.split(one, n_parts_max) == fits
        if not fits:
            assert np.array_equal(partition.part_of, part_of)
            continue
        columns.append(values)
        # The same cells are together, and every part has a piece with its number.
        pairs = set(zip(finer.tolist(), partition.part_of.tolist(), strict=True))
        assert len(pairs) == partition.n_parts == int(finer.max()) + 1
        assert set(range(int(before.max()) + 1)) <= set(partition.part_of.tolist())
        assert all(
            number in set(before[partition.part_of == number].tolist())
            for number in range(int(before.max()) + 1)
        )


def test_rows_are_read_on_the_parts_that_they_made() -> None:
    partition = CellPartition(np.zeros(4, dtype=np.int64))
    one = touched([0, 0, 1, -1], [1.0, 1.0, 2.5, 1.0])
    assert partition.split(one, 3)
    rows = one.on_parts(partition.part_of, (2, partition.n_parts))
    expected = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.5, 0.0]])
    assert np.array_equal(rows[:, partition.part_of], expected)
