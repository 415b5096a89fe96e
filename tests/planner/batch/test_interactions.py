"""Variances from marginals in closed form, against dense least squares on every cell."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cube.grid import Grid
from cube.query import Partition, QueryBlock, Scope, counting
from inference.blue.atoms import row_signature
from planner.batch.marginal_plan import interactions, subsets
from tests.support.cubes import SIZES, blocks
from tests.support.examples import examples

AXES = tuple(sorted(SIZES))

Floats = NDArray[np.float64]


def counts(scope: Scope) -> QueryBlock:
    """The count of every cell of a scope."""
    if not scope:
        return QueryBlock(counting())
    shape = tuple(SIZES[name] for name in scope)
    labels = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
    return QueryBlock(counting(), Partition(scope, labels))


def on_levels(scope: Scope) -> Grid:
    """The grid of every cell of a scope."""
    sizes = tuple(SIZES[name] for name in scope)
    return Grid.undivided(scope, sizes).refined([counts(scope)])


def dense(block: QueryBlock) -> Floats:
    """Its rows on every cell of the cube."""
    coefficient, group = row_signature(on_levels(AXES), block)
    rows = np.zeros((block.n_rows, coefficient.size))
    rows[group[group >= 0], np.flatnonzero(group >= 0)] = coefficient[group >= 0]
    return rows


def whole_rows() -> st.SearchStrategy[QueryBlock]:
    return (
        blocks(whole=True)
        .map(lambda block: block.primitive[0])
        .filter(lambda block: not block.query.is_constant)
    )


@settings(deadline=None, max_examples=examples(60))
@given(
    whole_rows(),
    st.lists(st.sampled_from(subsets(AXES)), max_size=4, unique=True),
    st.lists(st.floats(0.1, 3.0), min_size=5, max_size=5),
)
def test_the_variance_is_that_of_least_squares_on_every_cell(
    block: QueryBlock, further: list[Scope], weights: list[float]
) -> None:
    marginals = [block.scope, *(scope for scope in further if scope != block.scope)]
    rows = np.concatenate([dense(counts(scope)) for scope in marginals])
    scale = np.concatenate(
        [
            np.full(counts(scope).n_rows, weight / math.sqrt(2))
            for scope, weight in zip(marginals, weights, strict=False)
        ]
    )
    information = (rows * scale[:, np.newaxis]).T @ (rows * scale[:, np.newaxis])
    asked = dense(block)
    expected = np.einsum("ij,jk,ik->i", asked, np.linalg.pinv(information, rcond=1e-10), asked)

    found = np.zeros(block.n_rows)
    for chosen, squares in interactions(block, on_levels(block.scope)).items():
        informed = sum(
            weight**2 / (2 * math.prod(SIZES[name] for name in scope))
            for scope, weight in zip(marginals, weights, strict=False)
            if set(chosen) <= set(scope)
        )
        found += squares / informed
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@given(whole_rows())
def test_the_parts_of_a_row_add_up_to_its_square(block: QueryBlock) -> None:
    grid = on_levels(block.scope)
    coefficient, group = row_signature(grid, block)
    squares = np.bincount(group[group >= 0], coefficient[group >= 0] ** 2, block.n_rows)
    parts = sum(interactions(block, grid).values())
    np.testing.assert_allclose(parts, squares / grid.n_cells, rtol=1e-9, atol=1e-12)
