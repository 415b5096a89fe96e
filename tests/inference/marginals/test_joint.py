"""One joint for all marginals: against a solver, and where no joint exists."""

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import nnls

from cube.refusals import TooLarge
from inference.marginals.joint import EXCESS_ENOUGH, fitted_joint, reconciled_globally
from inference.marginals.nonnegative_fit import nonnegative
from inference.marginals.projection import reconciled
from inference.marginals.table import NoisyTable, marginal, misfit
from tests.support.examples import examples
from tests.support.noisy_tables import Floats, marginal_matrix, noisy_tables

UNEQUAL = np.array([[0.0, 0.5], [0.5, 0.0]])
TRIANGLE = [("a", "b"), ("b", "c"), ("a", "c")]


def best_misfit(tables: list[NoisyTable], total: float) -> float:
    """What a general solver reaches, on the joint written out."""
    sizes = {
        name: size
        for table in tables
        for name, size in zip(table.scope, table.values.shape, strict=True)
    }
    scope = tuple(sorted(sizes))
    matrix = np.vstack(
        [marginal_matrix(scope, table.scope, sizes) / np.sqrt(table.variance) for table in tables]
    )
    goal = np.concatenate([table.values.ravel() / np.sqrt(table.variance) for table in tables])
    # Non-negative least squares on shares of the total; the last row makes them sum to one.
    heavy = 1e6
    system = np.vstack([matrix * total, np.full((1, matrix.shape[1]), heavy)])
    _, rest = nnls(system, np.append(goal, heavy))
    return float(rest / np.sqrt(goal.size))


@settings(max_examples=examples(25))
@given(noisy_tables())
def test_it_is_as_close_as_its_bound_says(tables: list[NoisyTable]) -> None:
    total = max(0.0, float(reconciled(tables).tables[0].values.sum()))
    joint = fitted_joint(tables)
    assert joint.values.min() >= 0
    assert joint.values.sum() == pytest.approx(total, rel=1e-9)
    assert joint.excess <= 10 * EXCESS_ENOUGH
    sums = [marginal(joint.values, joint.scope, table.scope) for table in tables]
    reached, best = misfit(tables, sums), best_misfit(tables, total)
    assert best - 1e-4 <= reached
    assert reached**2 <= best**2 + joint.excess**2 + 1e-4


def test_no_three_columns_differ_pairwise_and_the_misfit_says_so() -> None:
    """All pairs agree and nothing is negative, and no joint has them: two of three are equal.

    By symmetry the best joint is the one that spreads its mass over the six cells that are not
    all equal, so that a pair is equal with probability a third.
    """
    tables = [NoisyTable(scope, UNEQUAL, 1e-4) for scope in TRIANGLE]
    assert reconciled(tables).misfit < 1e-9
    assert nonnegative(tables).misfit < 1e-9
    found = reconciled_globally(tables, total=1.0)
    assert found.residual < 1e-9
    for table in found.tables:
        assert np.allclose(table.values, [[1 / 6, 1 / 3], [1 / 3, 1 / 6]], rtol=0, atol=1e-3)
        assert table.standard_error is None
    assert found.misfit == pytest.approx(100 / 6, rel=1e-2)


def test_marginals_of_a_joint_are_given_back() -> None:
    rng = np.random.default_rng(2)
    truth = 100 * rng.dirichlet(np.ones(8)).reshape(2, 2, 2)
    tables = [NoisyTable(scope, marginal(truth, ("a", "b", "c"), scope), 1.0) for scope in TRIANGLE]
    found = reconciled_globally(tables)
    assert found.misfit < 2 * EXCESS_ENOUGH
    for table, fitted in zip(tables, found.tables, strict=True):
        assert np.allclose(fitted.values, table.values, rtol=0, atol=0.1)


def test_of_many_fits_the_most_even_one_is_taken() -> None:
    one, other = np.array([90.0, 10.0]), np.array([30.0, 70.0])
    joint = fitted_joint([NoisyTable(("a",), one, 1.0), NoisyTable(("b",), other, 1.0)])
    expected: Floats = np.multiply.outer(one, other) / 100
    assert np.allclose(joint.values, expected, rtol=0, atol=0.2)


def test_a_total_of_zero_gives_an_empty_joint() -> None:
    found = reconciled_globally([NoisyTable(("a",), np.array([1.0, -4.0]), 1.0)])
    assert found.tables[0].values.tolist() == [0.0, 0.0]


def test_a_joint_too_large_to_write_out_is_refused() -> None:
    tables = [NoisyTable((name,), np.ones(101), 1.0) for name in "abc"]
    with pytest.raises(TooLarge):
        fitted_joint(tables)
