"""A column's law given others: it meets every pair table that the others allow."""

import numpy as np
import pytest

from synthesis.buckets import Buckets
from synthesis.drawing import Conditional, PartnerTable
from synthesis.drawing import fit_conditional as fit_over_groups


def fit_conditional(
    base: np.ndarray, tables: list[np.ndarray], combinations: np.ndarray, counts: np.ndarray
) -> Conditional:
    """The fit to tables over all levels."""
    plain = Buckets(np.arange(base.size))
    return fit_over_groups(base, [PartnerTable(one, plain) for one in tables], combinations, counts)


def joint(seed: int, *shape: int) -> np.ndarray:
    """A dependent joint table of counts, the column last."""
    return np.random.default_rng(seed).gamma(0.7, 100.0, shape)


def found(
    shares: np.ndarray, combinations: np.ndarray, counts: np.ndarray, partner: int
) -> np.ndarray:
    table = np.zeros((int(combinations[:, partner].max()) + 1, shares.shape[1]))
    np.add.at(table, combinations[:, partner], shares * counts[:, np.newaxis])
    return table


def test_with_one_partner_it_is_the_table_s_own_conditional() -> None:
    table = joint(1, 6, 4)
    counts = np.array([5, 9, 1, 3, 7, 2])  # not the table's: only its law given the partner counts
    expected = table / table.sum(axis=1, keepdims=True)
    base = counts @ expected / counts.sum()
    law = fit_conditional(base, [table], np.arange(6)[:, None], counts)
    assert np.allclose(law.given(np.arange(6)[:, None]), expected)


def test_with_no_partner_it_is_the_column_s_own_law() -> None:
    base = np.array([0.2, 0.5, 0.3])
    law = fit_conditional(base, [], np.empty((1, 0), dtype=np.int64), np.array([10]))
    assert np.allclose(law.given(np.empty((2, 0), dtype=np.int64)), [base, base])


def test_it_meets_the_pair_tables_with_all_partners() -> None:
    truth = joint(2, 4, 3, 5, 6)
    partners = truth.sum(axis=-1)
    combinations = np.argwhere(partners > 0)
    counts = partners[tuple(combinations.T)]
    tables = [truth.sum(axis=tuple({0, 1, 2} - {axis})) for axis in range(3)]
    law = fit_conditional(truth.sum(axis=(0, 1, 2)) / truth.sum(), tables, combinations, counts)
    shares = law.given(combinations)
    assert np.allclose(shares.sum(axis=1), 1)
    for axis, table in enumerate(tables):
        error = np.abs(found(shares, combinations, counts, axis) - table).sum()
        assert error < 1e-4 * table.sum()


def test_of_laws_that_meet_the_tables_it_has_the_greatest_entropy() -> None:
    """Its log-odds are sums of one term for each partner: no interaction of partners is made up."""
    truth = joint(3, 3, 3, 2)
    combinations = np.argwhere(truth.sum(axis=-1) > 0)
    counts = truth.sum(axis=-1).ravel()
    tables = [truth.sum(axis=1), truth.sum(axis=0)]
    law = fit_conditional(truth.sum(axis=(0, 1)) / truth.sum(), tables, combinations, counts)
    shares = law.given(combinations).reshape(3, 3, 2)
    odds = np.log(shares[..., 0] / shares[..., 1])
    interaction = odds - odds.mean(0, keepdims=True) - odds.mean(1, keepdims=True) + odds.mean()
    assert np.allclose(interaction, 0, atol=1e-9)


def test_a_combination_it_was_not_fitted_on_has_a_law_too() -> None:
    truth = joint(4, 3, 4, 5)
    combinations = np.argwhere(truth.sum(axis=-1) > 0)
    counts = truth.sum(axis=-1).ravel()
    tables = [truth.sum(axis=1), truth.sum(axis=0)]
    base = truth.sum(axis=(0, 1)) / truth.sum()
    law = fit_conditional(base, tables, combinations[::2], counts[::2])
    shares = law.given(combinations)
    assert np.isfinite(shares).all()
    assert np.allclose(shares.sum(axis=1), 1)


def test_a_level_in_no_fitted_combination_has_no_effect() -> None:
    table = joint(5, 3, 4)
    base = np.array([6, 7]) @ (table[:2] / table[:2].sum(axis=1, keepdims=True)) / 13
    law = fit_conditional(base, [table], np.array([[0], [1]]), np.array([6, 7]))
    assert np.allclose(law.given(np.array([[2]])), base)


@pytest.mark.parametrize("certain", [0, 1])
def test_partners_that_exclude_every_level_leave_the_column_s_own_law(certain: int) -> None:
    first, second = np.diag([4.0, 4.0]), np.diag([4.0, 4.0])
    combinations = np.array([[0, 0], [1, 1]])
    base = np.array([0.5, 0.5])
    law = fit_conditional(base, [first, second], combinations, np.array([4, 4]))
    shares = law.given(np.array([[0, 1], [1, 0], [certain, certain]]))
    assert shares[:2].tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert shares[2, certain] == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(20))
def test_contradictory_tables_have_a_law_all_the_same(seed: int) -> None:
    """Tables with nothing in common, some of them certain: a compromise, and never a warning."""
    rng = np.random.default_rng(seed)
    combinations = np.argwhere(np.ones((4, 5, 3)))
    counts = rng.integers(1, 1_000, len(combinations))
    base = rng.dirichlet(np.full(6, 0.5))
    tables = [
        rng.gamma(0.05, 100.0, (size, 6)) * (rng.random((size, 6)) < 0.6) for size in (4, 5, 3)
    ]
    with np.errstate(all="raise", under="ignore"):
        shares = fit_conditional(base, tables, combinations, counts).given(combinations)
    assert np.isfinite(shares).all()
    assert np.allclose(shares.sum(axis=1), 1)


def test_a_table_over_groups_says_nothing_within_them() -> None:
    table = np.array([[30.0, 10.0], [20.0, 40.0]])
    groups = Buckets(np.array([0, 0, 1]))
    base = np.array([0.3, 0.2, 0.5])
    combinations, counts = np.array([[0], [1]]), np.array([40, 60])
    law = fit_over_groups(base, [PartnerTable(table, groups)], combinations, counts)
    shares = law.given(combinations)
    assert np.allclose(groups.summed(shares, 1), table / table.sum(axis=1, keepdims=True))
    assert np.allclose(shares[:, 0] / shares[:, 1], 1.5)


@pytest.mark.parametrize("n_partners", [4, 6])
def test_what_is_known_almost_exactly_may_contradict_itself(n_partners: int) -> None:
    """Each partner is all but certain of another level: shares shrink until they nearly vanish.

    In one or two of twenty such cases they were once divided by numbers that have no inverse.
    """
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = rng.integers(0, 6, (20, n_partners))
        combinations, counts = np.unique(rows, axis=0, return_counts=True)
        tables = []
        for certain in rng.integers(0, 2, (n_partners, 6)):
            table = 10.0 ** rng.uniform(-30, 0, (6, 2))
            table[np.arange(6), certain] += 100
            tables.append(table)
        base = 10.0 ** rng.uniform(-6, 0, 2)
        base /= base.sum()
        with np.errstate(all="raise", under="ignore"):
            shares = fit_conditional(base, tables, combinations, counts).given(combinations)
        assert np.isfinite(shares).all()
        assert np.allclose(shares.sum(axis=1), 1)
