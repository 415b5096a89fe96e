"""Atoms and matrices that grow keep what they had where it was."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cube.block import QueryBlock
from inference.atoms import Atoms
from inference.growing import GrowingMatrix
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
