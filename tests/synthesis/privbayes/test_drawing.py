"""Rows of a network: published uniforms, the law, the seed."""

import numpy as np
import pytest

from synthesis.privbayes.network import draw_rows, drawn_classes, given_parents
from tests.support.networks import GOLDEN, ONE, ZERO, joint

N_ROWS = 200_000


def test_uniforms_of_the_textbook_give_its_row() -> None:
    """0.59, 0.11, 0.70 and 0.07 give (1, 1, 0, 1)."""
    drawn: dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]] = {}
    for (node, conditional), uniform in zip(
        zip(GOLDEN.nodes, GOLDEN.conditionals, strict=True), [0.59, 0.11, 0.70, 0.07], strict=True
    ):
        laws, of_row = given_parents(GOLDEN, node, conditional, drawn, 1)
        drawn[node.child] = drawn_classes(laws, of_row, np.array([uniform]))
    assert [int(drawn[name][0]) for name in "ABCD"] == [ONE, ONE, ZERO, ONE]


def test_rows_have_the_joint_law() -> None:
    """Every cell within four standard deviations; the seed is fixed."""
    rows = draw_rows(GOLDEN, np.random.default_rng(11), n_rows=N_ROWS)
    found = np.zeros((2, 2, 2, 2))
    np.add.at(found, tuple(rows.T), 1 / N_ROWS)
    expected = joint(GOLDEN)
    assert (np.abs(found - expected) < 4 * np.sqrt(expected * (1 - expected) / N_ROWS)).all()


def test_a_seed_gives_the_same_table_and_as_many_rows_as_estimated() -> None:
    first, second, other = (draw_rows(GOLDEN, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first.shape == (10_000, 4)
    assert first.dtype == np.int32
    assert (first == second).all()
    assert (first != other).any()
    assert draw_rows(GOLDEN, np.random.default_rng(1), n_rows=0).shape == (0, 4)
    with pytest.raises(ValueError, match="negative"):
        draw_rows(GOLDEN, np.random.default_rng(1), n_rows=-1)


def test_what_has_no_share_is_never_drawn() -> None:
    """Not at either end of a law, nor where cumulated shares end below 1 or a float is rounded."""
    laws = np.tile([0.0, 0.1, 0.7, 0.2 - 1e-12, 0.0], (300_000, 1))
    of_row = np.repeat([0, 1, 299_999], 3)
    uniforms = np.tile([0.0, 0.5, np.nextafter(1.0, 0.0)], 3)
    assert drawn_classes(laws, of_row, uniforms).tolist() == [1, 2, 3] * 3
