"""Rows of a federated table as rows of one holder each: they add up, and there is one way back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cube.classes import Tiles
from cube.encoding import encode_statistic, fingerprint
from cube.holders import Holders
from cube.pieces import runs_of
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Term, counting
from cube.statistic import Choice, ChoiceCandidate, Distance, Score

SIZES = {"a": 3, "b": 2, "holder": 4}
AXES = tuple(SIZES)
HOLDERS = Holders("holder", 4)
CELLS = np.random.default_rng(3).integers(0, 9, size=tuple(SIZES.values()))


def coefficients(block: QueryBlock) -> NDArray[np.float64]:
    """Of every row at every cell of a, b and holder."""
    query = np.zeros(tuple(SIZES.values()))
    for term in block.query.terms:
        of_term = np.full(query.shape, float(term.scale))
        for factor in term.factors:
            shape = [SIZES[name] if name in factor.axes else 1 for name in AXES]
            of_term = of_term * factor.values.reshape(shape)
        query = query + of_term
    if block.partition is None:
        return query[np.newaxis]
    shape = [SIZES[name] if name in block.partition.axes else 1 for name in AXES]
    labels = np.broadcast_to(block.partition.labels.reshape(shape), query.shape)
    return np.stack([query * (labels == row) for row in range(block.n_rows)])


def arrays(axes: tuple[str, ...], low: int, high: int) -> st.SearchStrategy[NDArray[np.int64]]:
    shape = tuple(SIZES[name] for name in axes)
    numbers = st.lists(
        st.integers(low, high), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))
    )
    return numbers.map(lambda found: np.array(found, dtype=np.int64).reshape(shape))


SCOPES = [("a",), ("holder",), ("a", "holder"), ("b", "holder"), ("a", "b"), ("a", "b", "holder")]


def renumbered(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    found = np.unique(labels[labels >= 0])
    return np.where(labels >= 0, np.searchsorted(found, labels), -1).astype(np.int64)


@st.composite
def blocks(draw: st.DrawFn) -> QueryBlock:
    terms = []
    for _ in range(draw(st.integers(1, 2))):
        axes = draw(st.sampled_from(SCOPES))
        terms.append(Term(draw(st.fractions(1, 3)), (Factor(axes, draw(arrays(axes, 0, 2))),)))
    partition = None
    if draw(st.booleans()):
        axes = draw(st.sampled_from(SCOPES))
        labels = renumbered(draw(arrays(axes, -1, 2)))
        if labels.max() >= 0:
            partition = Partition(axes, labels)
    return QueryBlock(LinearQuery(tuple(terms)), partition)


@settings(max_examples=60, deadline=None)
@given(blocks())
def test_the_rows_of_the_holders_span_the_rows_and_no_cell_of_two(block: QueryBlock) -> None:
    found = HOLDERS.split(block)
    levels = [HOLDERS.at_holder(one)[0] for one in found]
    assert len(set(levels)) == len(levels)
    whole = coefficients(block)
    for level in range(4):
        own = np.zeros_like(whole)
        own[..., level] = whole[..., level]
        if level not in levels:
            assert not own.any()
            continue
        part = coefficients(found[levels.index(level)])
        assert not np.delete(part, level, axis=-1).any()
        flat = part.reshape(part.shape[0], -1)
        for row in own.reshape(own.shape[0], -1):  # each row at this holder is one of its rows
            solved = np.linalg.lstsq(flat.T, row, rcond=None)[0]
            assert np.allclose(flat.T @ solved, row)


@settings(max_examples=40, deadline=None)
@given(blocks())
def test_there_is_one_way_back(block: QueryBlock) -> None:
    for one in HOLDERS.split(block):
        level, held = HOLDERS.at_holder(one)
        assert "holder" not in held.scope
        assert fingerprint(HOLDERS.of_holder(held, level)) == fingerprint(one)
        assert HOLDERS.split(one) == (one,) or fingerprint(HOLDERS.split(one)[0]) == fingerprint(
            one
        )


def test_groups_in_tiles_are_split() -> None:
    along = (runs_of(np.array([0, 0, 1])), runs_of(np.arange(4)))
    values = np.arange(8).reshape(2, 4)
    block = QueryBlock(counting(), Partition(("a", "holder"), Tiles(along, values)))
    found = HOLDERS.split(block)
    assert [one.n_rows for one in found] == [2, 2, 2, 2]
    total = sum(coefficients(one).sum(axis=0) for one in found)
    assert np.array_equal(total, np.ones_like(CELLS))


@pytest.mark.parametrize(
    "block",
    [
        QueryBlock(counting()),
        QueryBlock(counting([Factor(("holder",), np.array([1, 1, 0, 0]))])),
        QueryBlock(counting([Factor(("holder",), np.array([0, 2, 1, 0]))])),
        QueryBlock(counting(), Partition(("holder",), np.arange(4))),
        QueryBlock(
            LinearQuery(
                counting([Factor(("holder",), np.array([1, 0, 0, 0]))]).terms
                + counting([Factor(("holder",), np.array([0, 1, 0, 0]))]).terms
            )
        ),
        QueryBlock(counting([Factor(("a", "holder"), np.eye(4, dtype=np.int64)[:3])])),
    ],
)
def test_rows_of_several_holders_are_no_rows_of_one(block: QueryBlock) -> None:
    with pytest.raises(ValueError, match="holder"):
        HOLDERS.at_holder(block)


def test_a_single_holder_has_all_rows() -> None:
    alone = Holders("holder", 1)
    block = QueryBlock(counting([Factor(("a",), np.array([1, 0, 1]))]))
    assert [fingerprint(one) for one in alone.split(block)] == [fingerprint(block)]
    assert alone.at_holder(block) == (0, block)


def test_statistics_are_of_one_holder() -> None:
    views = (Partition(("a",), np.arange(3)), Partition(("b",), np.arange(2)))
    choice = Choice(Score.DISTANCE, views, (ChoiceCandidate(0, (1,)),))
    level, back_choice = HOLDERS.choice_at(HOLDERS.choice_of(choice, 2))
    assert (level, encode_statistic(back_choice)) == (2, encode_statistic(choice))
    distance = Distance(QueryBlock(counting(), views[0]), (1, 2, 3))
    level, back = HOLDERS.distance_at(HOLDERS.distance_of(distance, 3))
    assert (level, back.reference) == (3, (1, 2, 3))
    assert fingerprint(back.block) == fingerprint(distance.block)
    with pytest.raises(ValueError, match="one holder"):
        HOLDERS.choice_at(choice)


@pytest.mark.parametrize("n_holders", [0, 101])
def test_there_are_one_to_a_hundred_holders(n_holders: int) -> None:
    with pytest.raises(ValueError, match="1 to 100"):
        Holders("holder", n_holders)
