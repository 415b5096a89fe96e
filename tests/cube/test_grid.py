"""Classes of levels against the definition: levels are together if no array distinguishes them."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.classes import N_FEW, AxisClasses, by_first_appearance, run_starts
from cube.encoding import decode_block, encode_block
from cube.grid import Grid
from cube.pieces import runs_of
from cube.query import Factor, QueryBlock, counting

keys = st.lists(st.lists(st.integers(-2, 2), min_size=6, max_size=6), min_size=1, max_size=4)


@given(keys)
def test_levels_share_a_class_where_every_array_agrees(arrays: list[list[int]]) -> None:
    classes = AxisClasses.of_labels(np.zeros(6, dtype=np.int64))
    for array in arrays:
        classes = classes.refined(np.array(array, dtype=np.int64))
    told = list(zip(*arrays, strict=True))
    first = [told.index(one) for one in told]
    expected = [sorted(set(first)).index(place) for place in first]
    assert classes.of_level.tolist() == expected
    assert classes.representatives.tolist() == sorted(set(first))
    assert classes.sizes.tolist() == [first.count(place) for place in sorted(set(first))]
    assert classes.n_classes == len(set(first))


@given(keys)
def test_classes_refine_others_as_they_do_one_by_one(arrays: list[list[int]]) -> None:
    parts = [
        AxisClasses.of_labels(by_first_appearance(np.array(array, dtype=np.int64)))
        for array in arrays
    ]
    first, *others = parts
    joint = first.refined_by(others)
    told = list(zip(*arrays, strict=True))
    order = list(dict.fromkeys(told))
    assert joint.of_level.tolist() == [order.index(one) for one in told]
    assert all(joint.refines(part) for part in parts)
    assert (joint is first) == all(first.refines(part) for part in others)


def test_more_classes_than_one_number_tells_are_refined_together() -> None:
    draw = np.random.default_rng(5)
    arrays = [by_first_appearance(draw.integers(0, 3, size=90)) for _ in range(80)]
    first, *others = map(AxisClasses.of_labels, arrays)
    told = list(zip(*(array.tolist() for array in arrays), strict=True))
    order = list(dict.fromkeys(told))
    found = first.refined_by(others)
    assert found.of_level.tolist() == [order.index(one) for one in told]


def test_an_array_that_distinguishes_nothing_returns_the_same_classes() -> None:
    classes = AxisClasses.of_labels(np.array([0, 0, 1, 1, 0], dtype=np.int64))
    assert classes.refined(np.array([7, 7, 3, 3, 7], dtype=np.int64)) is classes


def test_nothing_divides_a_level() -> None:
    classes = AxisClasses.of_labels(np.arange(5, dtype=np.int64))
    assert classes.refined(np.array([3, 1, 1, 2, 3], dtype=np.int64)) is classes
    rising = classes.refined(runs_of(np.arange(5, dtype=np.int64) * 2))
    assert rising.of_level.tolist() == classes.of_level.tolist()


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=20))
def test_runs_begin_where_a_value_differs_from_the_one_before(values: list[int]) -> None:
    expected = [
        place for place in range(len(values)) if place == 0 or values[place] != values[place - 1]
    ]
    assert run_starts(np.array(values, dtype=np.int64)).tolist() == expected


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=20))
def test_labels_are_numbered_as_they_appear(codes: list[int]) -> None:
    order = list(dict.fromkeys(codes))
    labels = by_first_appearance(np.array(codes, dtype=np.int64))
    assert labels.tolist() == [order.index(code) for code in codes]


@pytest.mark.parametrize("n_levels", [N_FEW - 1, N_FEW, N_FEW + 1, 5 * N_FEW])
def test_many_runs_are_numbered_as_few_are(n_levels: int) -> None:
    rng = np.random.default_rng(n_levels)
    first, second = rng.integers(-4, 4, size=(2, n_levels))
    both = list(zip(first.tolist(), second.tolist(), strict=True))
    order = list(dict.fromkeys(both))
    classes = AxisClasses.of_labels(by_first_appearance(first)).refined(second)
    assert classes.of_level.tolist() == [order.index(one) for one in both]
    assert classes.n_classes == len(order)


def test_blocks_read_back_share_their_predicates_and_keep_none_alive() -> None:
    adults = Factor(("age",), np.array([0, 0, 1, 1], dtype=np.int64))
    women = Factor(("sex",), np.array([1, 0], dtype=np.int64))
    texts = [encode_block(QueryBlock(counting(parts))) for parts in ([adults], [adults, women])]
    first, second = map(decode_block, texts)
    shared = second.query.terms[0].factors[0]
    assert first.query.terms[0].factors[0] is shared
    watched = weakref.ref(shared)
    del first, second, shared
    gc.collect()
    assert watched() is None


def test_an_array_over_two_axes_is_compared_slice_by_slice_once_while_its_block_is_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tied = np.array([[0, 1, 1], [0, 1, 1], [1, 0, 0]], dtype=np.int64)
    block = QueryBlock(counting([Factor(("a", "b"), tied)]), None)
    undivided = Grid.undivided(("a", "b"), (3, 3))
    first = undivided.refined([block])
    assert [one.of_level.tolist() for one in first.classes] == [[0, 0, 1], [0, 1, 1]]
    monkeypatch.setattr("cube.grid.slice_keys", None)
    again = undivided.refined([block])
    assert [one.of_level.tolist() for one in again.classes] == [[0, 0, 1], [0, 1, 1]]
    held = weakref.ref(block)
    del block
    gc.collect()
    assert held() is None
