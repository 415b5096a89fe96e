"""Readings from hierarchies: least squares by hand, on every kind of family of partitions."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from accountant.noise.lattice_noise import LatticeNoise
from cube.measurement import Measurement, Weight
from cube.query import Factor, Partition, QueryBlock, counting
from inference.blue.hierarchy_reader import HierarchyReader, divided
from inference.blue.partition_reader import Reading

SIZES = {"x": 12, "y": 9}


def counted(**widths: int) -> QueryBlock:
    """The count of every product of intervals of some axes."""
    axes = tuple(sorted(widths))
    labels = np.zeros((), dtype=np.int64)
    for name in axes:
        interval = np.arange(SIZES[name]) // widths[name]
        labels = np.add.outer(labels * (int(interval[-1]) + 1), interval)
    return QueryBlock(counting(), Partition(axes, labels))


def measured(blocks: Sequence[QueryBlock], weights: Sequence[float]) -> dict[int, Measurement]:
    """Measurements of blocks at places 10, 11, ..., each value different."""
    found = {}
    for place, (block, epsilon) in enumerate(zip(blocks, weights, strict=True), start=10):
        noise = LatticeNoise.for_weight(Weight.at_least(epsilon))
        values = tuple(range(place, place + block.n_rows))
        found[place] = Measurement(
            block, noise.weight, noise.lattice_bits, noise.noise_scale, values
        )
    return found


def rows_of(block: QueryBlock) -> NDArray[np.float64]:
    """The rows of a block of counts, over the flattened cells of its partition."""
    assert block.partition is not None
    labels = block.partition.labels.ravel()
    found: NDArray[np.float64] = (labels == np.arange(block.n_rows)[:, np.newaxis]).astype(float)
    return found


def as_matrix(reading: Reading, known: dict[int, Measurement]) -> NDArray[np.float64]:
    """The coefficients of all noisy counts, (n_rows, n_counts), in the order of their places."""
    starts = dict(
        zip(
            known,
            np.cumsum([0, *(one.block.n_rows for one in known.values())]).tolist(),
            strict=False,
        )
    )
    found = np.zeros((reading.is_covered.size, sum(one.block.n_rows for one in known.values())))
    columns = [starts[place] for place in reading.noise_place.tolist()] + reading.noise_row
    np.add.at(found, (reading.row, columns), reading.coefficient)
    return found


def least_squares(asked: NDArray[np.float64], known: dict[int, Measurement]) -> NDArray[np.float64]:
    """The best coefficients, from the normal equations."""
    rows = np.concatenate([rows_of(one.block) for one in known.values()])
    precision = np.concatenate(
        [np.full(one.block.n_rows, one.noise_scale**-2.0) for one in known.values()]
    )
    gram = rows.T @ (precision[:, np.newaxis] * rows)
    best: NDArray[np.float64] = precision * (rows @ np.linalg.solve(gram, asked.T)).T
    return best


LINE = [counted(x=1), counted(x=2), counted(x=6)]
PLANE = [counted(x=1, y=1), counted(x=1, y=3), counted(x=4, y=1), counted(x=4, y=3)]
RANGE = np.array([0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0], dtype=np.int64)


@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (0.5, 1.0, 3.0)])
def test_on_a_line_the_combination_is_the_best(weights: tuple[float, ...]) -> None:
    known = measured(LINE, weights)
    reading = HierarchyReader(("x",), known).read(QueryBlock(counting([Factor(("x",), RANGE)])))
    assert reading is not None
    assert as_matrix(reading, known) == pytest.approx(
        least_squares(RANGE[np.newaxis].astype(np.float64), known), abs=1e-9
    )


@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0, 1.0), (1.0, 2.0, 3.0, 6.0)])
def test_on_a_plane_it_is_the_best_where_noise_is_a_product(weights: tuple[float, ...]) -> None:
    known = measured(PLANE, weights)
    along = np.array([1, 1, 1, 1, 0, 0, 0, 0, 2], dtype=np.int64)
    block = QueryBlock(counting([Factor(("x",), RANGE), Factor(("y",), along)]))
    reading = HierarchyReader(("x", "y"), known).read(block)
    assert reading is not None
    asked = np.outer(RANGE, along).ravel()[np.newaxis].astype(np.float64)
    assert as_matrix(reading, known) == pytest.approx(least_squares(asked, known), abs=1e-6)


def test_whatever_the_noise_the_groups_add_up_to_the_query() -> None:
    known = measured(PLANE, (1.0, 0.1, 7.0, 0.3))
    block = QueryBlock(counting([Factor(("x",), RANGE)]), Partition(("y",), np.arange(9) % 3))
    reading = HierarchyReader(("x", "y"), known).read(block)
    assert reading is not None
    rows = np.concatenate([rows_of(one.block) for one in known.values()])
    asked = [np.outer(RANGE, np.arange(9) % 3 == group).ravel() for group in range(3)]
    assert as_matrix(reading, known) @ rows == pytest.approx(np.array(asked), abs=1e-9)
    values = np.concatenate([one.values for one in known.values()])
    read = np.bincount(reading.row, reading.coefficient * reading.value, 3)
    assert read == pytest.approx(as_matrix(reading, known) @ values)


def test_what_is_not_nested_or_not_complete_is_left_out() -> None:
    known = measured([*PLANE[:3], counted(x=5, y=1)], (1.0,) * 4)
    reader = HierarchyReader(("x", "y"), known)
    assert reader.n_tables == 2  # the cells, and one table that extends them alone
    block = QueryBlock(counting([Factor(("x",), RANGE)]))
    reading = reader.read(block)
    assert reading is not None
    assert set(reading.noise_place.tolist()) <= {10, 11}


def test_a_query_that_cuts_the_finest_groups_is_not_read() -> None:
    reader = HierarchyReader(("x",), measured(LINE[1:], (1.0, 1.0)))
    odd = np.array([1, *[0] * 11], dtype=np.int64)
    assert reader.read(QueryBlock(counting([Factor(("x",), odd)]))) is None
    assert reader.read(QueryBlock(counting([Factor(("x",), np.repeat(odd[:6], 2))]))) is not None


def test_only_partitions_of_all_cells_into_products_are_divided() -> None:
    assert divided(PLANE[3]) is not None
    assert divided(QueryBlock(counting())) is None
    left_out = np.arange(12) - 1
    assert divided(QueryBlock(counting(), Partition(("x",), left_out))) is None
    diagonal = np.eye(9, dtype=np.int64)
    assert divided(QueryBlock(counting(), Partition(("y", "z"), diagonal))) is None
    reader = HierarchyReader(
        ("x",), measured([QueryBlock(counting(), Partition(("x",), left_out))], (1.0,))
    )
    assert reader.read(LINE[0]) is None
