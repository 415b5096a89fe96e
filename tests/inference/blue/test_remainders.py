"""What hierarchies leave of rows: the parts add up cell by cell, and share no cell."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from accountant.noise.lattice_noise import LatticeNoise
from cube.classes import AxisClasses
from cube.grid import Grid
from cube.measurement import Measurement, Weight
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Term, counting
from inference.blue.hierarchy_reader import (
    N_CUT_MAX,
    Divided,
    HierarchyReader,
    divided_at,
    is_divided_at,
)

SIZES = {"x": 40, "y": 30}
WIDTHS = {"x": 6, "y": 4}
LEAVES = Grid(
    ("x", "y"),
    tuple(AxisClasses.of_labels(np.arange(SIZES[name]) // WIDTHS[name]) for name in ("x", "y")),
)


def dense(query: LinearQuery) -> NDArray[np.int64]:
    """The coefficient of every cell."""
    total = np.zeros((SIZES["x"], SIZES["y"]), dtype=np.int64)
    for term in query.terms:
        cells = np.full_like(total, int(term.scale))
        for factor in term.factors:
            along = factor.values[:, np.newaxis] if factor.axes == ("x",) else factor.values
            cells = cells * along
        total += cells
    return total


def row(**values: NDArray[np.int64]) -> QueryBlock:
    """A product of arrays, in lowest terms."""
    factors = tuple(Factor((name,), values[name]) for name in sorted(values))
    return QueryBlock(LinearQuery((Term(Fraction(1), factors),))).primitive[0]


def between(name: str, first: int, last: int) -> NDArray[np.int64]:
    """1 in a range of an axis's levels, 0 elsewhere."""
    places = np.arange(SIZES[name])
    return ((first <= places) & (places <= last)).astype(np.int64)


def adds_up(parts: Divided, block: QueryBlock) -> bool:
    """Whether the whole groups and the rest are the row."""
    found = dense(parts.whole.query)
    if parts.rest is not None:
        found = found + int(parts.multiplier) * dense(parts.rest.query)
    return np.array_equal(found, dense(block.query))


def test_ranges_and_boxes_are_whole_groups_and_a_rest_on_other_cells() -> None:
    rng = np.random.default_rng(3)
    n_divided = 0
    for case in range(200):
        ends = {name: np.sort(rng.integers(0, SIZES[name], size=2)) for name in SIZES}
        if case % 3 == 0:
            ends.pop("y")
        block = row(**{name: between(name, first, last) for name, (first, last) in ends.items()})
        parts = divided_at(LEAVES, block)
        if parts is None:
            continue
        assert adds_up(parts, block)
        assert LEAVES.refined([parts.whole]) is LEAVES
        if parts.rest is not None:
            n_divided += 1
            assert not (dense(parts.whole.query) * dense(parts.rest.query)).any()
            assert parts.rest is parts.rest.primitive[0]
    assert n_divided > 80


def test_a_row_of_several_values_is_its_whole_groups_and_a_multiple_of_the_rest() -> None:
    values = np.where(between("x", 0, 11), 3, 2 * between("x", 12, 31))
    block = row(x=values)
    parts = divided_at(LEAVES, block)
    assert parts is not None
    assert parts.multiplier == 2
    assert adds_up(parts, block)


def test_whole_groups_have_no_rest() -> None:
    block = row(x=between("x", 6, 23))
    assert divided_at(LEAVES, block) == Divided(block)


def test_what_is_within_one_group_or_cuts_many_is_not_divided() -> None:
    assert divided_at(LEAVES, row(x=between("x", 7, 10))) is None
    leaves = Grid(("x",), (AxisClasses.of_labels(np.arange(40) // 2),))
    odd = (np.arange(40) % 2) * between("x", 0, 2 * N_CUT_MAX + 1) + between("x", 30, 39)
    assert divided_at(leaves, row(x=np.minimum(odd, 1))) is None


def test_whether_a_row_is_divided_is_whether_parts_are_found() -> None:
    rng = np.random.default_rng(4)
    finer = Grid(
        ("x", "y"), tuple(AxisClasses.of_labels(np.arange(size) // 2) for size in SIZES.values())
    )
    found = []
    for case in range(300):
        ends = {name: np.sort(rng.integers(0, SIZES[name], size=2)) for name in SIZES}
        block = row(**{name: between(name, first, last) for name, (first, last) in ends.items()})
        if case % 5 == 0:
            odd = rng.integers(0, 2, size=SIZES["x"])  # cuts many groups
            block = row(x=np.maximum(odd, between("x", 30, 39)), y=between("y", *ends["y"]))
        if case % 7 == 0:
            both = counting([Factor(("x",), between("x", *ends["x"]))])
            block = QueryBlock(both + counting([Factor(("y",), between("y", *ends["y"]))]))
        for leaves in (LEAVES, finer, LEAVES):  # what is kept of a factor is of one partition
            expected = divided_at(leaves, block) is not None
            assert is_divided_at(leaves, block) == expected
            found.append(expected)
    assert 100 < sum(found) < 800


def test_sums_of_products_and_groups_are_not_divided() -> None:
    both = counting([Factor(("x",), between("x", 3, 30))])
    both += counting([Factor(("y",), between("y", 3, 20))])
    assert divided_at(LEAVES, QueryBlock(both)) is None
    groups = QueryBlock(counting(), Partition(("x",), np.arange(40) // 5))
    assert divided_at(LEAVES, groups) is None


@pytest.mark.parametrize("multiplier", [1, 3])
def test_a_reading_is_that_of_the_whole_groups_with_the_rest(multiplier: int) -> None:
    def measured(block: QueryBlock, epsilon: float, value: int) -> Measurement:
        noise = LatticeNoise.for_weight(Weight.at_least(epsilon))
        values = (value,) * block.n_rows
        return Measurement(block, noise.weight, noise.lattice_bits, noise.noise_scale, values)

    leaves = QueryBlock(counting(), Partition(("x",), np.arange(40) // 6))
    reader = HierarchyReader(("x",), {5: measured(leaves, 1.0, 1000)})
    inner = 2 if multiplier == 3 else 1
    block = row(x=inner * between("x", 6, 23) + multiplier * between("x", 24, 26))
    parts = reader.divided(block)
    assert parts is not None
    assert parts.rest is not None
    rest = measured(parts.rest, 0.5, 70)
    assert reader.read_with_rest(block, lambda _: None) is None
    reading = reader.read_with_rest(block, lambda _: (9, rest))
    assert reading is not None
    assert reading.noise_place.tolist() == [5, 5, 5, 9]
    assert reading.noise_row.tolist() == [1, 2, 3, 0]
    np.testing.assert_allclose(reading.coefficient, [inner] * 3 + [multiplier], rtol=1e-12)
    assert reading.noise_scale[-1] == rest.noise_scale
    assert reading.value[-1] == rest.values[0]
