"""Synthetic counts beside known ones, against counting by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from proxy.synthetic_tables.report.compare import KnownTable, TableComparison, Total, compare

Integers = NDArray[np.int64]
LEVELS = {"a": np.array([0, 0, 1, 2, 2, 2]), "b": np.array([1, 0, 1, 1, 1, 0])}


def known(scope: tuple[str, ...], *groups: list[int], half_width: float = 1.0) -> KnownTable:
    labels = tuple(np.array(one) for one in groups)
    values = np.full([int(one.max()) + 1 for one in labels], 2.0)
    return KnownTable(scope, labels, values, values - half_width, values + half_width)


def compared(*tables: KnownTable, total: Total | None = None) -> TableComparison:
    return compare(LEVELS, tables, total=total, confidence=0.95)


def test_rows_are_counted_in_the_groups_of_their_levels() -> None:
    found = compared(known(("a",), [0, 1, 1]), known(("a", "b"), [0, 1, 1], [1, 0]))
    assert found.one_ways["a"].synthetic.tolist() == [2, 4]
    assert found.pairs["a", "b"].synthetic.tolist() == [[1, 1], [3, 1]]
    assert found.one_ways["a"].is_inside.tolist() == [True, False]
    assert found.pairs["a", "b"].is_inside.all()


@given(st.integers(0, 2**32 - 1))
def test_every_cell_is_counted_as_by_hand(seed: int) -> None:
    rng = np.random.default_rng(seed)
    levels = {"a": rng.integers(0, 4, 50), "b": rng.integers(0, 3, 50)}
    groups = (np.array([0, 1, 1, 2]), np.array([0, 1, 0]))
    zeros = np.zeros((3, 2))
    table = KnownTable(("a", "b"), groups, zeros, zeros - 5, zeros + 5)
    found = compare(levels, [table], total=None, confidence=0.9).pairs["a", "b"]
    for place in np.ndindex(3, 2):
        expected = sum(
            (groups[0][a], groups[1][b]) == place for a, b in zip(*levels.values(), strict=True)
        )
        assert found.synthetic[place] == expected
        assert found.is_inside[place] == (expected <= 5)
        assert found.relative[place] == pytest.approx(expected / 5)


def test_what_the_history_does_not_determine_is_not_compared() -> None:
    values = np.array([2.0, 0.0, 0.0])
    low, high = np.array([1.0, -np.inf, -np.inf]), np.array([3.0, np.inf, np.inf])
    partly = KnownTable(("a",), (np.arange(3),), values, low, high)
    nothing = KnownTable(("b",), (np.arange(2),), values[1:], low[1:], high[1:])
    found = compared(partly, nothing)
    assert list(found.one_ways) == ["a"]
    table = found.one_ways["a"]
    assert (table.n_known, table.n_inside, table.weighed_inside) == (1, 1, 1.0)
    assert table.largest(10) == [(0,)]
    assert np.isfinite(table.differences).all()
    assert np.isfinite(table.relative).all()


def test_a_table_of_another_number_of_rows_is_scaled_to_the_private_one() -> None:
    table = known(("a",), [0, 1, 1])
    tenfold = compared(table, total=Total(60.0, 50.0, 70.0))
    assert tenfold.scale == 10.0
    assert tenfold.one_ways["a"].synthetic.tolist() == [20, 40]
    assert compared(table, total=Total(6.01, 0.0, 12.0)).scale == 1.0
    assert compared(table, total=Total(-3.0, 0.0, 0.0)).scale == 1.0


def test_the_largest_differences_are_told_in_half_widths_of_each_count() -> None:
    values = np.array([2.0, 0.0, 0.0])
    half_widths = np.array([1.0, 10.0, 0.5])
    table = KnownTable(("a",), (np.arange(3),), values, values - half_widths, values + half_widths)
    found = compared(table).one_ways["a"]
    assert found.differences.tolist() == [0, 1, 3]
    assert found.largest(2) == [(2,), (1,)]


def test_near_empty_counts_that_are_inside_do_not_hide_a_large_one_that_is_not() -> None:
    values = np.array([900.0, 50.0, 50.0, 0.0, -3.0])
    table = KnownTable(("a",), (np.arange(5),), values, values - 9, values + 9)
    levels = {"a": np.repeat(np.arange(5), [850, 50, 50, 0, 0])}
    found = compare(levels, [table], total=None, confidence=0.95).one_ways["a"]
    assert (found.n_inside, found.n_known) == (4, 5)
    assert found.weighed_inside == pytest.approx(0.1)


def test_clipping_at_a_public_bound_does_not_shorten_a_half_width() -> None:
    value, low, high = np.array([-4.0]), np.array([0.0]), np.array([2.0])
    clipped = KnownTable(("a",), (np.zeros(3, dtype=np.int64),), value, low, high)
    assert compared(clipped).one_ways["a"].half_widths.tolist() == [6.0]


def test_only_tables_of_the_synthetic_columns_are_compared() -> None:
    found = compared(known(("c",), [0, 1]))
    assert not found.one_ways
    assert not found.pairs


@pytest.mark.parametrize(
    ("scope", "groups", "shape"),
    [
        (("a",), (np.arange(2),), (3,)),
        (("a", "b"), (np.arange(2),), (2,)),
        (("b", "a"), (np.arange(2), np.arange(2)), (2, 2)),
    ],
)
def test_a_known_table_that_does_not_fit_its_groups_is_no_value(
    scope: tuple[str, ...], groups: tuple[Integers, ...], shape: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match=r"groups|groupings|sorted"):
        KnownTable(scope, groups, np.zeros(shape), np.zeros(shape), np.zeros(shape))


def test_an_estimate_that_is_no_number_or_has_an_empty_interval_is_no_value() -> None:
    one, groups = np.ones(1), (np.zeros(2, dtype=np.int64),)
    with pytest.raises(ValueError, match="finite"):
        KnownTable(("a",), groups, one * np.nan, one, one)
    with pytest.raises(ValueError, match="empty"):
        KnownTable(("a",), groups, one, one, one - 1)
