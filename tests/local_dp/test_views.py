"""Views: disjoint combinations, every set covered, the counts that are known."""

from itertools import combinations
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cube.refusals import TooLarge
from local_dp.campaign import View, designed_views


def names(n: int) -> tuple[str, ...]:
    return tuple(f"a{number:02}" for number in range(n))


def check(views: tuple[View, ...], n: int, size: int, strength: int) -> None:
    covered = set()
    for view in views:
        inside = [name for one in view for name in one]
        assert len(set(inside)) == len(inside) == (n // size) * size
        for one in view:
            assert list(one) == sorted(one)
            assert len(one) == size
            covered |= set(combinations(one, strength))
    assert len(covered) == comb(n, strength)


@pytest.mark.parametrize(
    ("n", "n_views", "n_pairs"), [(6, 5, 3), (5, 5, 2), (37, 37, 18), (20, 19, 10)]
)
def test_pairs_are_met_exactly_once_in_the_fewest_views(n: int, n_views: int, n_pairs: int) -> None:
    views = designed_views(names(n), 2)
    check(views, n, 2, 2)
    assert len(views) == n_views
    assert all(len(view) == n_pairs for view in views)
    assert n_views * n_pairs == comb(n, 2)  # so that none is met twice


@given(st.integers(2, 4), st.integers(0, 5), st.integers(2, 3))
@settings(max_examples=20, deadline=None)
def test_larger_combinations_cover_every_set(size: int, more: int, strength: int) -> None:
    strength = min(strength, size)
    views = designed_views(names(size + more), size, strength=strength)
    check(views, size + more, size, strength)
    assert len(views) <= comb(size + more, strength)
    assert views == designed_views(names(size + more), size, strength=strength)


def test_a_large_design_is_near_the_fewest_views() -> None:
    views = designed_views(names(20), 4)
    check(views, 20, 4, 2)
    assert len(views) <= 2 * 190 / 30  # each view has 5 combinations of 6 pairs


def test_what_no_design_can_be_is_refused() -> None:
    for size, strength in ((1, 2), (4, 2), (2, 3), (3, 1)):
        with pytest.raises(ValueError, match=r"attributes|strength"):
            designed_views(names(3), size, strength=strength)
    with pytest.raises(ValueError, match="same name"):
        designed_views(("a", "a"), 2)
    with pytest.raises(TooLarge):
        designed_views(names(200), 3)
