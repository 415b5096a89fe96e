"""Sources of tables: what they count, which table they read, how many rows their noise leaves."""

import numpy as np
import pytest

from synthesis.networks.source import (
    AddedNoise,
    MeasuredTables,
    NoisyCounts,
    RowTables,
    ShareTable,
    effective_rows,
)
from synthesis.tables import Column
from tests.support import survey_network

COLUMNS = (Column("a", 2), Column("b", 3), Column("c", 2))


def test_rows_are_counted() -> None:
    source = RowTables(survey_network.columns(), survey_network.sampled(500, 1))
    table = source.table((5, 0))
    counts = np.zeros((3, 3))
    for row in survey_network.sampled(500, 1):
        counts[row[0], row[5]] += 1
    np.testing.assert_allclose(table.shares, counts / 500)
    assert table.n_rows == source.effective_rows((0, 5)) == 500
    assert table.law is None


@pytest.mark.parametrize(
    "codes", [np.zeros((0, 3)), np.full((4, 3), 2), np.full((4, 3), -1), np.zeros((4, 2))]
)
def test_codes_that_are_no_levels_are_refused(codes: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"codes of the shape|not one of its"):
        RowTables(COLUMNS, codes.astype(np.int64))


def test_a_margin_is_of_the_table_that_leaves_it_least_noise() -> None:
    rng = np.random.default_rng(2)
    counts = rng.integers(50, 90, (2, 3, 2)).astype(float)
    source = MeasuredTables(
        [
            NoisyCounts(("c", "a"), counts.sum(axis=1).T, 10.0),  # of a: 10 * 2 for each cell
            NoisyCounts(("a", "b"), counts.sum(axis=2), 4.0),  # 4 * 3
            NoisyCounts(("b", "c"), counts.sum(axis=0) + 1000, 4.0),
        ]
    )
    names = [one.name for one in source.columns]
    assert sorted(names) == ["a", "b", "c"]
    a, b = names.index("a"), names.index("b")
    table = source.table((a,))
    assert table.law == AddedNoise(12.0)
    pair = source.table((b, a))
    expected = counts.sum(axis=2) if a < b else counts.sum(axis=2).T
    spread = (source.n_rows - counts.sum()) / 6  # the nearest table with the sum of all
    np.testing.assert_allclose(pair.shares * source.n_rows, expected + spread)
    n_effective = effective_rows(source.n_rows, 6, 4.0)
    assert source.effective_rows((a, b)) == n_effective < source.n_rows


def test_shares_are_never_negative_and_sum_to_one() -> None:
    source = MeasuredTables([NoisyCounts(("a", "b"), np.array([[5.0, -3.0], [-2.0, 7.0]]), 9.0)])
    table = source.table((0, 1))
    assert (table.shares >= 0).all()
    assert table.shares.sum() == pytest.approx(1)


def test_tables_that_do_not_make_a_source_are_refused() -> None:
    pair = NoisyCounts(("a", "b"), np.ones((2, 2)), 1.0)
    with pytest.raises(ValueError, match="no table has the columns"):
        MeasuredTables([pair, NoisyCounts(("b", "c"), np.ones((2, 2)), 1.0)])
    with pytest.raises(ValueError, match="numbers of levels of b"):
        MeasuredTables([pair, NoisyCounts(("b", "a"), np.ones((3, 2)), 1.0)])
    with pytest.raises(ValueError, match="at least one table"):
        MeasuredTables([])
    with pytest.raises(ValueError, match="finite"):
        NoisyCounts(("a",), np.array([np.nan]), 1.0)
    with pytest.raises(ValueError, match="must not be negative and must sum"):
        ShareTable(np.array([0.5, 0.6]), 10.0)


def test_shares_with_noise_vary_as_those_of_the_effective_rows() -> None:
    """The mean squared error over 4000 draws; its standard error is below 2 %."""
    rng = np.random.default_rng(5)
    law, n_rows, variance = np.full(8, 1 / 8), 2000, 300.0
    counts = AddedNoise(variance).noisy_tables(law, n_rows, 4000, rng)
    error = float(((counts / n_rows - law) ** 2).sum(axis=1).mean())
    n_effective = effective_rows(n_rows, 8, variance)
    assert error == pytest.approx(1 / n_effective, rel=0.08)
