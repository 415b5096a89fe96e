"""Marginals that were not measured: known cases, all constraints met, contradictions reported."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy

from cube.refusals import TooLarge
from inference.marginals.entropy import maximum_entropy
from inference.marginals.nonnegative_fit import nonnegative
from inference.marginals.table import ConsistentTable, NoisyTable, marginal
from tests.support.examples import examples
from tests.support.noisy_tables import LEVELS, noisy_tables

AXES = tuple(sorted(LEVELS))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([0.5, 0.5], [0.4, 0.6], [[0.2, 0.3], [0.2, 0.3]]),
        ([0.9, 0.1], [0.9, 0.1], [[0.81, 0.09], [0.09, 0.01]]),
    ],
)
def test_without_a_common_table_columns_are_independent(
    one: list[float], other: list[float], expected: list[list[float]]
) -> None:
    tables = [ConsistentTable(("a",), np.array(one)), ConsistentTable(("b",), np.array(other))]
    found = maximum_entropy(("a", "b"), tables)
    assert np.allclose(found.values, expected, rtol=0, atol=1e-12)
    assert found.residual < 1e-12


@settings(max_examples=examples(30))
@given(noisy_tables(), st.sets(st.sampled_from(AXES), min_size=1))
def test_all_that_is_known_of_it_is_kept(tables: list[NoisyTable], names: set[str]) -> None:
    """A joint of the tables exists by construction, so that constraints can all be met."""
    rng = np.random.default_rng(len(tables))
    joint = 1 + 10 * rng.exponential(size=tuple(LEVELS.values()))
    known = [
        ConsistentTable(one.scope, marginal(joint, AXES, one.scope))
        for one in [*tables, *(NoisyTable((name,), np.ones(LEVELS[name]), 1.0) for name in AXES)]
    ]
    scope = tuple(sorted(names))
    found = maximum_entropy(scope, known)
    total = joint.sum()
    assert found.residual < 1e-6 * total
    for table in known:
        shared = [name for name in table.scope if name in scope]
        wanted = marginal(table.values, table.scope, shared)
        assert np.allclose(marginal(found.values, scope, shared), wanted, rtol=0, atol=1e-6 * total)
    # The truth meets the same constraints, so it cannot be more even.
    truth = marginal(joint, AXES, scope)
    assert entropy(found.values.ravel()) >= entropy(truth.ravel()) - 1e-6


def test_a_marginal_within_a_table_is_read_from_it() -> None:
    table = ConsistentTable(("a", "b"), np.array([[1.0, 2.0], [3.0, -4.0]]))
    assert maximum_entropy(("b",), [table]).values.tolist() == [4.0, -2.0]
    assert float(maximum_entropy((), [table]).values) == 2.0


def test_a_chain_of_tables_gives_conditional_independence() -> None:
    rng = np.random.default_rng(4)
    left = rng.exponential(size=(3, 2))
    right = rng.exponential(size=(2, 4))
    right *= (left.sum(axis=0) / right.sum(axis=1))[:, None]
    tables = [ConsistentTable(("a", "b"), left), ConsistentTable(("b", "c"), right)]
    found = maximum_entropy(("a", "b", "c"), tables).values
    expected = left[:, :, None] * right[None] / left.sum(axis=0)[None, :, None]
    assert np.allclose(found, expected, rtol=1e-8)


def test_contradictions_give_the_nearest_table_and_a_residual() -> None:
    unequal = np.array([[0.0, 50.0], [50.0, 0.0]])
    scopes = [("a", "b"), ("b", "c"), ("a", "c")]
    found = maximum_entropy(("a", "b", "c"), [ConsistentTable(one, unequal) for one in scopes])
    assert found.residual == pytest.approx(100 / 6, rel=0.01)
    assert found.values.min() >= 0
    for one in scopes:
        sums = marginal(found.values, ("a", "b", "c"), one)
        assert np.allclose(sums, [[100 / 6, 100 / 3], [100 / 3, 100 / 6]], rtol=0, atol=0.1)


def test_cells_below_zero_show_in_the_residual() -> None:
    tables = [
        ConsistentTable(("a",), np.array([12.0, -2.0])),
        ConsistentTable(("b",), np.array([5.0, 5.0])),
    ]
    found = maximum_entropy(("a", "b"), tables)
    assert found.values.min() >= 0
    assert found.residual == pytest.approx(2.0, abs=0.1)


def test_it_follows_on_tables_made_nonnegative() -> None:
    rng = np.random.default_rng(6)
    noisy = [
        NoisyTable(("a", "b"), 5 + 5 * rng.standard_normal((3, 2)), 25.0),
        NoisyTable(("b", "c"), 5 + 5 * rng.standard_normal((2, 4)), 25.0),
    ]
    tables = nonnegative(noisy).tables
    assert maximum_entropy(("a", "c"), tables).residual < 1e-4


def test_columns_without_any_table_are_refused() -> None:
    with pytest.raises(ValueError, match="no table has"):
        maximum_entropy(("a", "b"), [ConsistentTable(("a",), np.ones(2))])


def test_a_table_too_large_to_write_out_is_refused() -> None:
    tables = [ConsistentTable((name,), np.ones(101)) for name in "abc"]
    with pytest.raises(TooLarge):
        maximum_entropy(("a", "b", "c"), tables)
