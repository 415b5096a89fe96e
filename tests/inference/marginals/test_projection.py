"""Tables made to agree: against dense least squares, hand-computed figures and invariants."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.refusals import TooLarge
from inference.marginals.projection import meeting_sets, reconciled, standard_errors
from inference.marginals.table import NoisyTable, Reconciled, marginal
from tests.support.noisy_tables import (
    LEVELS,
    Floats,
    flat,
    noisy_tables,
    projection_matrix,
    shape_of,
)


def values_of(found: Reconciled) -> list[Floats]:
    return [table.values for table in found.tables]


def errors_of(found: Reconciled) -> list[float]:
    errors = [table.standard_error for table in found.tables]
    assert None not in errors
    return [float(error) for error in errors if error is not None]


def test_two_tables_meet_halfway_and_what_they_do_not_share_stays() -> None:
    first = NoisyTable(("a", "b"), np.array([[0.1, 0.4], [0.3, 0.2]]), 1.0)
    second = NoisyTable(("a", "c"), np.array([[0.2, 0.4], [0.3, 0.1]]), 1.0)
    one, other = values_of(reconciled([first, second]))
    assert np.allclose(one, [[0.125, 0.425], [0.275, 0.175]], rtol=0, atol=1e-15)
    assert np.allclose(other, [[0.175, 0.375], [0.325, 0.125]], rtol=0, atol=1e-15)
    assert np.allclose(one.sum(axis=1), [0.55, 0.45], rtol=0, atol=1e-15)
    assert np.allclose(one.sum(axis=0), [0.4, 0.6], rtol=0, atol=1e-15)
    assert np.allclose(other.sum(axis=0), [0.5, 0.5], rtol=0, atol=1e-15)


@given(noisy_tables())
def test_all_pairs_agree_exactly(tables: list[NoisyTable]) -> None:
    found = reconciled(tables)
    for one, other in combinations(found.tables, 2):
        shared = sorted(set(one.scope) & set(other.scope))
        mine = marginal(one.values, one.scope, shared)
        assert np.allclose(mine, marginal(other.values, other.scope, shared), rtol=1e-12)
    assert found.residual < 1e-10


@given(noisy_tables())
def test_it_is_the_weighted_least_squares_projection(tables: list[NoisyTable]) -> None:
    expected = projection_matrix(tables) @ flat([table.values for table in tables])
    assert np.allclose(flat(values_of(reconciled(tables))), expected, rtol=0, atol=1e-8)


@given(noisy_tables(), st.booleans())
def test_standard_errors_are_those_of_the_dense_linear_map(
    tables: list[NoisyTable], is_public: bool
) -> None:
    matrix = projection_matrix(tables, is_total_public=is_public)
    noise = flat([np.full_like(table.values, table.variance) for table in tables])
    variances = np.diag((matrix * noise) @ matrix.T)
    found = reconciled(tables, total=100.0 if is_public else None)
    claimed = flat(
        [
            np.full_like(table.values, error**2)
            for table, error in zip(tables, errors_of(found), strict=True)
        ]
    )
    assert np.allclose(claimed, variances, rtol=1e-7, atol=1e-9)
    assert claimed.sum() <= noise.sum() * (1 + 1e-12)
    assert (claimed <= noise * (1 + 1e-12)).all()


@given(noisy_tables(), st.booleans())
def test_a_marginal_of_a_table_has_the_standard_error_of_its_sums(
    tables: list[NoisyTable], is_public: bool
) -> None:
    table = tables[0]
    onto = table.scope[1:]
    starts = np.cumsum([0, *(one.values.size for one in tables)])
    matrix = projection_matrix(tables, is_total_public=is_public)[: starts[1]]
    sums = matrix.reshape(*table.values.shape, -1)
    if table.scope:
        sums = sums.sum(axis=0)
    noise = flat([np.full_like(one.values, one.variance) for one in tables])
    variances = (sums**2 * noise).sum(axis=-1)
    (claimed,) = standard_errors(tables, [onto], total=100.0 if is_public else None)
    assert np.allclose(claimed**2, variances, rtol=1e-7, atol=1e-8)


@given(noisy_tables())
def test_marginals_that_nobody_shares_stay_if_totals_agree(tables: list[NoisyTable]) -> None:
    level = [
        NoisyTable(one.scope, one.values * (50 / one.values.sum()), one.variance) for one in tables
    ]
    for before, after in zip(level, reconciled(level).tables, strict=True):
        others = [set(one.scope) for one in level if one is not before]
        alone = [name for name in before.scope if not any(name in scope for scope in others)]
        if alone:
            was = marginal(before.values, before.scope, alone)
            assert np.allclose(marginal(after.values, after.scope, alone), was, rtol=1e-10)


@given(noisy_tables(), st.none() | st.floats(0, 500))
def test_a_second_time_changes_nothing(tables: list[NoisyTable], total: float | None) -> None:
    once = reconciled(tables, total=total)
    again = reconciled(
        [
            NoisyTable(one.scope, one.values, before.variance)
            for one, before in zip(once.tables, tables, strict=True)
        ],
        total=total,
    )
    assert np.allclose(flat(values_of(again)), flat(values_of(once)), rtol=0, atol=1e-9)
    assert again.misfit < 1e-9


@given(noisy_tables(), st.data())
def test_the_order_of_tables_does_not_matter(tables: list[NoisyTable], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(tables))))
    straight = reconciled(tables)
    mixed = reconciled([tables[place] for place in order])
    expected = [straight.tables[place] for place in order]
    assert np.allclose(
        flat(values_of(mixed)), flat([one.values for one in expected]), rtol=0, atol=1e-9
    )
    errors = errors_of(straight)
    assert np.allclose(errors_of(mixed), [errors[place] for place in order], rtol=1e-12)


@given(noisy_tables(), st.floats(0, 500))
def test_a_public_total_is_honoured_to_the_end(tables: list[NoisyTable], total: float) -> None:
    matrix = projection_matrix(tables, is_total_public=True)
    even = [np.full_like(one.values, total / one.values.size) for one in tables]
    expected = flat(even) + matrix @ (flat([one.values for one in tables]) - flat(even))
    found = values_of(reconciled(tables, total=total))
    assert np.allclose(flat(found), expected, rtol=0, atol=1e-8)
    assert np.allclose([cells.sum() for cells in found], total, rtol=1e-12, atol=1e-9)


def test_one_table_alone_is_left_alone() -> None:
    table = NoisyTable(("a", "b"), np.array([[1.5, -2.0], [3.0, 4.0]]), 2.25)
    found = reconciled([table])
    assert found.tables[0].values.tolist() == table.values.tolist()
    assert found.tables[0].standard_error == pytest.approx(1.5, rel=1e-15)
    assert found.misfit == found.residual == 0


def test_tables_of_one_scope_are_averaged_with_inverse_variances() -> None:
    good = NoisyTable(("a",), np.array([10.0, 20.0]), 1.0)
    poor = NoisyTable(("a",), np.array([14.0, 12.0]), 3.0)
    first, second = reconciled([good, poor]).tables
    assert np.allclose(first.values, [11.0, 18.0], rtol=1e-15)
    assert np.allclose(second.values, first.values, rtol=1e-15)
    assert first.standard_error == pytest.approx(0.75**0.5, rel=1e-15)


def test_error_on_shared_marginals_falls() -> None:
    """900 squares of standard deviation below 2.5 times their mean: 8 % of it for their mean.

    Falling short of a fall by half is then ten standard deviations away, and a quarter is three.
    """
    scopes = [("a", "b"), ("a", "c"), ("a", "d")]
    rng = np.random.default_rng(1)
    before = after = 0.0
    n_seeds = 300
    for _ in range(n_seeds):
        tables = [NoisyTable(one, rng.laplace(size=shape_of(one)), 2.0) for one in scopes]
        found = reconciled(tables).tables
        before += sum(float((marginal(t.values, t.scope, "a") ** 2).sum()) for t in tables)
        after += sum(float((marginal(t.values, t.scope, "a") ** 2).sum()) for t in found)
    # Cells of A have variances 4, 4 and 8 before, and 1 / (1/4 + 1/4 + 1/8) = 1.6 after.
    assert after / (n_seeds * 9) == pytest.approx(1.6, rel=0.25)
    assert after < 0.5 * before


def test_sets_that_tables_meet_in_come_smaller_first() -> None:
    found = meeting_sets([("a", "b", "c"), ("b", "c", "d"), ("a", "d")], total=5.0)
    expected = ["", "a", "d", "ad", "bc", "abc", "bcd"]
    assert ["".join(sorted(one)) for one in found] == expected


def test_tables_that_meet_in_too_many_sets_are_refused() -> None:
    names = [f"{place:02d}" for place in range(16)]
    scopes = [tuple(name for name in names if name != left) for left in names]
    with pytest.raises(TooLarge):
        meeting_sets(scopes)


def test_what_no_table_covers_has_no_standard_error() -> None:
    table = NoisyTable(("a",), np.ones(LEVELS["a"]), 1.0)
    with pytest.raises(ValueError, match="no table covers"):
        standard_errors([table], [("b",)])
    other = NoisyTable(("b",), np.ones(LEVELS["b"]), 1.0)
    with pytest.raises(ValueError, match="no table covers"):
        standard_errors([table, other], [("a", "b")])


def test_tables_check_themselves() -> None:
    with pytest.raises(ValueError, match="sorted"):
        NoisyTable(("b", "a"), np.ones((2, 2)), 1.0)
    with pytest.raises(ValueError, match="dimensions"):
        NoisyTable(("a",), np.ones((2, 2)), 1.0)
    with pytest.raises(ValueError, match="finite"):
        NoisyTable(("a",), np.array([1.0, np.nan]), 1.0)
    with pytest.raises(ValueError, match="variance"):
        NoisyTable(("a",), np.ones(2), 0.0)
    with pytest.raises(ValueError, match="levels"):
        reconciled([NoisyTable(("a",), np.ones(2), 1.0), NoisyTable(("a",), np.ones(3), 1.0)])
    with pytest.raises(ValueError, match="at least one table"):
        reconciled([])


def test_a_table_cannot_be_changed_afterwards() -> None:
    counts = np.ones(2)
    table = NoisyTable(("a",), counts, 1.0)
    counts[0] = 7
    assert table.values.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        table.values[0] = 7
