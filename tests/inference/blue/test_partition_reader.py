"""Readings from counted groups, against brute force over the cells of small cubes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cube.measurement import Measurement, Weight
from cube.query import Factor, Partition, QueryBlock, counting
from inference.blue.partition_reader import PartitionReader
from inference.history import counts_groups
from tests.support.cubes import SIZES, blocks, dense_rows, partitions

AXES = tuple(sorted(SIZES))
SHAPE = tuple(SIZES.values())
COUNTS = np.random.default_rng(5).integers(0, 10**6, size=int(np.prod(SHAPE)))
N_LEVELS = 16


def counted(block: QueryBlock, counts: NDArray[np.int64], weight: float) -> Measurement:
    """A measurement without noise, so that what is read off it can be compared exactly."""
    paid = Weight.at_least(weight)
    values = [
        sum(int(a * n) for a, n in zip(row, counts, strict=True)) for row in dense_rows(block)
    ]
    scale = math.nextafter(1 / float(paid.exact), math.inf)
    return Measurement(block, paid, 0, scale, tuple(values))


@given(
    st.lists(partitions(), min_size=1, max_size=4),
    st.lists(st.floats(0.1, 9), min_size=4),
    blocks(),
)
def test_what_is_read_is_the_answer(
    history: list[Partition], weights: list[float], asked: QueryBlock
) -> None:
    asked = asked.primitive[0]
    measured = [
        counted(QueryBlock(counting(), partition), COUNTS, weight)
        for partition, weight in zip(history, weights, strict=False)
    ]
    reading = PartitionReader(AXES, SHAPE, dict(enumerate(measured))).read(asked)
    total = np.bincount(
        reading.row, weights=reading.coefficient * reading.value, minlength=asked.n_rows
    )
    for place, row in enumerate(dense_rows(asked)):
        if reading.is_covered[place]:
            assert total[place] == sum(a * n for a, n in zip(row, COUNTS, strict=True))
        else:
            assert any(row)
            assert place not in reading.row


@given(
    st.lists(partitions(), min_size=2, max_size=4),
    st.lists(st.floats(0.1, 9), min_size=4),
    blocks(),
)
def test_an_extended_reader_reads_the_same_as_a_new_one(
    history: list[Partition], weights: list[float], asked: QueryBlock
) -> None:
    asked = asked.primitive[0]
    measured = {
        place: counted(QueryBlock(counting(), partition), COUNTS, weight)
        for place, (partition, weight) in enumerate(zip(history, weights, strict=False))
    }
    first = PartitionReader(AXES, SHAPE, {0: measured[0]})
    first.read(asked)
    assert first.reading({0: measured[0]}) is first
    read, afresh = first.reading(measured).read(asked), PartitionReader(AXES, SHAPE, measured)
    for one, other in zip(vars(read).values(), vars(afresh.read(asked)).values(), strict=True):
        assert np.array_equal(one, other)


@given(blocks())
def test_every_query_is_read_off_all_cells(asked: QueryBlock) -> None:
    labels = np.arange(COUNTS.size).reshape(SHAPE)
    cells = counted(QueryBlock(counting(), Partition(AXES, labels)), COUNTS, 1.0)
    reading = PartitionReader(AXES, SHAPE, {0: cells}).read(asked.primitive[0])
    assert reading.is_covered.all()


@given(
    st.lists(st.sampled_from([0.5, 1.0, 2.0, 4.0, 8.0]), min_size=3, max_size=3),
    st.lists(st.integers(0, 2), min_size=N_LEVELS, max_size=N_LEVELS),
)
def test_of_nested_groups_the_least_noisy_cover_is_used(
    weights: list[float], coefficients: list[int]
) -> None:
    widths = (1, 4, 16)
    measured = [
        Measurement(
            QueryBlock(counting(), Partition(("x",), np.arange(N_LEVELS) // width)),
            Weight.at_least(weight),
            0,
            math.nextafter(1 / weight, math.inf),
            (0,) * (N_LEVELS // width),
        )
        for width, weight in zip(widths, weights, strict=True)
    ]
    asked = QueryBlock(counting([Factor(("x",), np.array(coefficients, dtype=np.int64))]))
    factor = asked.primitive[0].query.terms
    values = np.ones(N_LEVELS) if not factor else np.array(coefficients, dtype=np.float64)
    if factor and factor[0].factors:
        values = factor[0].factors[0].values.astype(np.float64)

    def least(start: int, width: int) -> float:
        """The least variance to cover ``width`` levels from `start` on."""
        inside = values[start : start + width]
        level = widths.index(width)
        ways = [math.inf]
        if not inside.any():
            return 0.0
        if (inside == inside[0]).all():
            ways.append((inside[0] / weights[level]) ** 2)
        if level:
            finer = widths[level - 1]
            ways.append(sum(least(part, finer) for part in range(start, start + width, finer)))
        return min(ways)

    reading = PartitionReader(("x",), (N_LEVELS,), dict(enumerate(measured))).read(
        asked.primitive[0]
    )
    used = float(np.square(reading.coefficient * reading.noise_scale).sum())
    assert used == pytest.approx(least(0, N_LEVELS) if factor else 0.0)


@pytest.mark.parametrize(
    ("block", "counts"),
    [
        (QueryBlock(counting()), True),
        (QueryBlock(counting(), Partition(("a",), np.array([0, 1, -1]))), True),
        (QueryBlock(counting([Factor(("a",), np.array([0, 1, 1]))])), False),
        (QueryBlock(counting() + counting([Factor(("a",), np.array([0, 1, 1]))])), False),
    ],
)
def test_only_counts_of_whole_groups_are_read(block: QueryBlock, counts: bool) -> None:
    assert counts_groups(block) is counts
