"""Counts of one column from tables of several: least squares by hand, on the tables' margins."""

import numpy as np
import pytest
from numpy.typing import NDArray

from cube.measurement import Measurement
from cube.query import Factor, Partition, QueryBlock, counting
from inference.blue.counted_groups import MarginReader
from inference.blue.partition_reader import Reading
from tests.inference.blue.test_hierarchy_reader import RANGE, SIZES, counted, measured

TABLES = [
    counted(x=1),
    counted(x=2, y=1),
    counted(x=2, y=3),
    counted(x=6, y=1),
    counted(y=1),
]
WEIGHTS = (0.5, 2.0, 1.0, 3.0, 1.0)
WIDTHS = (1, 2, 2, 6)  # of the tables that have x, along x


def on_cells(reading: Reading, known: dict[int, Measurement]) -> NDArray[np.float64]:
    """The sum of all used counts, by the cells of x and y that they count, (n_rows, 12, 9)."""
    found = np.zeros((reading.is_covered.size, SIZES["x"], SIZES["y"]))
    for row, share, place, counted_row in zip(
        reading.row, reading.coefficient, reading.noise_place, reading.noise_row, strict=True
    ):
        partition = known[int(place)].block.partition
        assert partition is not None
        cells = (partition.labels == counted_row).astype(float)
        if partition.axes == ("x",):
            cells = cells[:, np.newaxis]
        found[row] += share * cells
    return found


def least_variance(asked: NDArray[np.float64], known: dict[int, Measurement]) -> float:
    """Of the best combination of the margins along x, from the normal equations."""
    gram = np.zeros((SIZES["x"], SIZES["x"]))
    for width, one in zip(WIDTHS, known.values(), strict=False):
        groups = np.arange(SIZES["x"]) // width
        n_groups = int(groups[-1]) + 1
        variance = one.block.n_rows / n_groups * one.noise_scale**2
        indicator = (groups == np.arange(n_groups)[:, np.newaxis]).astype(float)
        gram += indicator.T @ indicator / variance
    return float(asked @ np.linalg.solve(gram, asked))


@pytest.mark.parametrize(
    "asked", [RANGE, np.arange(12, dtype=np.int64), np.eye(12, dtype=np.int64)[4]]
)
def test_the_combination_is_unbiased_and_the_best_of_the_margins(
    asked: NDArray[np.int64],
) -> None:
    known = measured(TABLES, WEIGHTS)
    with_x = {place: one for place, one in known.items() if "x" in one.block.scope}
    reading = MarginReader(("x",), with_x).read(QueryBlock(counting([Factor(("x",), asked)])))
    assert reading is not None
    assert on_cells(reading, known)[0] == pytest.approx(np.outer(asked, np.ones(9)), abs=1e-9)
    expected = least_variance(asked.astype(float), known)
    assert reading.variances[0] == pytest.approx(expected)
    alone = known[10].noise_scale ** 2 * (asked**2).sum()
    assert expected < alone  # the tables of two columns say something too


def test_every_group_of_a_partition_is_read_at_once() -> None:
    known = measured(TABLES, WEIGHTS)
    with_x = {place: one for place, one in known.items() if "x" in one.block.scope}
    block = QueryBlock(counting(), Partition(("x",), np.arange(12) // 3))
    reading = MarginReader(("x",), with_x).read(block)
    assert reading is not None
    groups = (np.arange(12) // 3 == np.arange(4)[:, np.newaxis]).astype(float)
    assert on_cells(reading, known) == pytest.approx(np.repeat(groups[:, :, np.newaxis], 9, axis=2))
    expected = [least_variance(one, known) for one in groups]
    assert reading.variances == pytest.approx(expected)


def test_the_whole_table_is_counted_by_every_table() -> None:
    """By their precision: the variance is the harmonic sum of those of the tables' totals."""
    known = measured([*TABLES, QueryBlock(counting())], (*WEIGHTS, 0.7))
    reading = MarginReader((), known).read(QueryBlock(counting()))
    assert reading is not None
    precision = sum(1 / (one.block.n_rows * one.noise_scale**2) for one in known.values())
    assert reading.variances[0] == pytest.approx(1 / precision)
    totals = [one.values.sum() / one.block.n_rows / one.noise_scale**2 for one in known.values()]
    assert reading.coefficient @ reading.value == pytest.approx(sum(totals) / precision)


def test_one_table_is_left_to_others_and_a_finer_query_is_not_read() -> None:
    known = measured(TABLES, WEIGHTS)
    half = QueryBlock(counting([Factor(("x",), RANGE)]))
    assert MarginReader(("x",), {10: known[10]}).read(half) is None
    reader = MarginReader(("x",), {11: known[11], 12: known[12]})
    odd = QueryBlock(counting([Factor(("x",), np.arange(12, dtype=np.int64) % 3)]))
    assert reader.read(odd) is None
    even = np.repeat(np.array([0, 1, 1, 0, 0, 0], dtype=np.int64), 2)
    assert reader.read(QueryBlock(counting([Factor(("x",), even)]))) is not None


def test_partitions_that_are_not_nested_are_left_out() -> None:
    known = measured([counted(x=2, y=1), counted(x=3, y=1), counted(x=6)], (1.0, 1.0, 1.0))
    assert MarginReader(("x",), known).n_tables == 2


def test_a_longer_history_extends_the_reader() -> None:
    known = measured(TABLES, WEIGHTS)
    some = {place: known[place] for place in (10, 11)}
    reader = MarginReader(("x",), some)
    assert reader.reading(some) is reader
    block = QueryBlock(counting([Factor(("x",), RANGE)]))
    more = {place: known[place] for place in (10, 11, 12, 13)}
    extended, afresh = reader.reading(more).read(block), MarginReader(("x",), more).read(block)
    assert extended is not None
    assert afresh is not None
    assert extended.coefficient == pytest.approx(afresh.coefficient)
