"""Atoms and matrices that grow keep their earlier entries in place."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cube.query import QueryBlock
from inference.blue.atoms import Atoms
from inference.blue.blue import GrowingMatrix
from tests.support.cubes import SIZES, blocks

AXES = tuple(sorted(SIZES))


@given(st.lists(blocks(whole=True), min_size=1, max_size=4))
def test_atoms_that_are_cut_keep_their_numbers_and_further_pieces_follow(
    asked: list[QueryBlock],
) -> None:
    atoms = Atoms.undivided(AXES, tuple(SIZES[name] for name in AXES))
    for block in asked:
        refinement = atoms.refined([block])
        assert refinement is not None
        finer, parents, _ = refinement
        n_before = atoms.n_atoms
        assert parents[:n_before].tolist() == list(range(n_before))
        together = np.bincount(parents, weights=finer.sizes, minlength=n_before)
        assert together.tolist() == atoms.sizes.tolist()
        atoms = finer


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), min_size=1, max_size=8)
)
def test_a_growing_matrix_holds_what_plain_arrays_hold(
    steps: list[tuple[int, int, bool]],
) -> None:
    rng = np.random.default_rng(0)
    matrix, plain = GrowingMatrix(2), np.zeros((0, 2))
    for n_rows, n_columns, is_shuffled in steps:
        width = plain.shape[1] + n_columns
        rows = rng.standard_normal((n_rows, width))
        matrix.append(rows)
        plain = np.vstack((np.pad(plain, ((0, 0), (0, n_columns))), rows))
        sources = np.append(np.arange(width), rng.integers(0, width, size=n_columns))
        if is_shuffled:
            sources = rng.permutation(sources)
        matrix.gather_columns(sources)
        plain = plain[:, sources]
        assert np.array_equal(matrix.values, plain)
        assert np.array_equal(matrix.copy().values, plain)


@given(st.lists(st.integers(0, 3), min_size=2, max_size=8), st.integers(0, 2**32 - 1))
def test_a_copy_and_its_original_grow_independently(n_columns: list[int], seed: int) -> None:
    """Each in turn, by rows, by columns and by rearranging them, unseen by the other."""
    rng = np.random.default_rng(seed)
    matrices, plain = [GrowingMatrix(2)], [np.zeros((0, 2))]
    for n_more in n_columns:
        which = int(rng.integers(len(matrices)))
        matrices.append(matrices[which].copy())
        plain.append(plain[which])
        for place in (which, len(matrices) - 1):
            matrix, values = matrices[place], plain[place]
            rows = rng.standard_normal((int(rng.integers(3)), values.shape[1] + n_more))
            matrix.append(rows)
            values = np.vstack((np.pad(values, ((0, 0), (0, n_more))), rows))
            sources = np.append(np.arange(values.shape[1]), np.zeros(n_more, dtype=np.int64))
            if rng.random() < 1 / 3:
                sources = rng.permutation(sources)
            matrix.gather_columns(sources)
            plain[place] = values[:, sources]
        for matrix, values in zip(matrices, plain, strict=True):
            assert np.array_equal(matrix.values, values)


@given(st.lists(blocks(whole=True), min_size=1, max_size=6), st.integers(1, 12), st.integers(1, 8))
def test_the_blocks_that_fit_are_those_that_fit_one_by_one(
    asked: list[QueryBlock], n_atoms_max: int, n_rows_max: int
) -> None:
    start = Atoms.undivided(AXES, tuple(SIZES[name] for name in AXES))
    atoms, n_rows, expected = start, 0, []
    for place, block in enumerate(asked):
        refinement = atoms.refined([block], n_atoms_max)
        if refinement is not None and n_rows + block.n_rows <= n_rows_max:
            atoms, n_rows = refinement[0], n_rows + block.n_rows
            expected.append(place)
    assert start.fitting(asked, n_atoms_max=n_atoms_max, n_rows_max=n_rows_max) == expected
