"""Columns and noisy tables: values that check themselves, and their best combination."""

import numpy as np
import pytest

from synthesis.tables import Column, TableEstimate, combined, estimated_total, expected_l1


def table(values: object, variance: object = 1.0, scope: tuple[str, ...] = ("a",)) -> TableEstimate:
    return TableEstimate(scope, np.asarray(values, dtype=float), np.asarray(variance, dtype=float))


@pytest.mark.parametrize(("size", "n_ordered"), [(0, 0), (3, 4), (3, -1)])
def test_a_column_has_levels_and_orders_no_more_of_them_than_it_has(
    size: int, n_ordered: int
) -> None:
    with pytest.raises(ValueError, match="level"):
        Column("a", size, n_ordered)


@pytest.mark.parametrize(
    ("scope", "values", "variance"),
    [
        (("b", "a"), [[1.0]], 1.0),
        (("a",), [[1.0]], 1.0),
        (("a", "b", "c"), [[[1.0]]], 1.0),
        (("a",), [np.nan], 1.0),
        (("a",), [1.0], np.inf),
        (("a",), [1.0], 0.0),
        (("a",), [1.0], -1.0),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(
    scope: tuple[str, ...], values: object, variance: object
) -> None:
    with pytest.raises(ValueError, match=r"sorted|dimensions|finite|noise"):
        table(values, variance, scope)


def test_a_table_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        table([1.0]).values[0] = 2.0


def test_a_margin_adds_values_and_variances() -> None:
    pair = table([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[1.0, 2.0]] * 3, ("a", "b"))
    assert pair.margin("a").values.tolist() == [3.0, 7.0, 11.0]
    assert pair.margin("a").variance.tolist() == [3.0, 3.0, 3.0]
    assert pair.margin("b").variance.tolist() == [3.0, 6.0]
    with pytest.raises(ValueError, match="not in"):
        pair.margin("c")


def test_a_combination_is_the_weighted_least_squares_estimate() -> None:
    rng = np.random.default_rng(1)
    variances = rng.uniform(0.5, 5.0, (4, 6))
    looks = [table(rng.normal(size=6), variance) for variance in variances]
    best = combined(looks)
    for cell in range(6):
        scaled = 1 / np.sqrt(variances[:, cell])
        seen = np.array([look.values[cell] for look in looks])
        expected = np.linalg.lstsq(scaled[:, np.newaxis], scaled * seen, rcond=None)[0]
        assert best.values[cell] == pytest.approx(expected[0])
        assert best.variance[cell] == pytest.approx(1 / (scaled @ scaled))


def test_different_cells_are_not_combined() -> None:
    with pytest.raises(ValueError, match="same cells"):
        combined([table([1.0]), table([1.0, 2.0])])
    with pytest.raises(ValueError, match="at least one"):
        combined([])


def test_the_total_is_never_negative_and_0_if_nothing_is_known() -> None:
    assert estimated_total([table([3.0, 4.0]), table([9.0])]) == pytest.approx(25 / 3)
    assert estimated_total([table([-3.0, 1.0])]) == 0.0
    assert estimated_total([]) == 0.0


def test_the_expected_noise_of_gaussian_cells_is_exact() -> None:
    noise = np.random.default_rng(2).normal(0.0, 3.0, 400_000)
    # The mean of 400,000 has a standard deviation of 0.003: 5 of them are a chance of 6e-7
    assert expected_l1(table([0.0], 9.0)) == pytest.approx(np.abs(noise).mean(), abs=0.015)
