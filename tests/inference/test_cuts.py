"""What the cuts of rows say of a history, against linear algebra on every cell of a small cube."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cube.block import Partition, QueryBlock
from cube.encoding import fingerprint
from cube.query import Factor, LinearQuery, Term, counting
from inference import cuts as module
from inference.cuts import CutIndex, rows_of
from tests.support.cubes import SIZES, blocks, dense_rows


def ranges(axis: str) -> st.SearchStrategy[Factor]:
    """Conditions BETWEEN two levels: what almost every history is made of."""
    ends = st.tuples(*[st.integers(0, SIZES[axis] - 1)] * 2).map(sorted)
    return ends.map(
        lambda two: Factor(
            (axis,),
            np.array([two[0] <= level <= two[1] for level in range(SIZES[axis])], dtype=np.int64),
        )
    )


@st.composite
def range_counts(draw: st.DrawFn) -> QueryBlock:
    axes = draw(st.lists(st.sampled_from(sorted(SIZES)), unique=True, min_size=1, max_size=3))
    partition = None
    if draw(st.booleans()):
        name = draw(st.sampled_from(sorted(SIZES)))
        labels = np.arange(SIZES[name]) - draw(st.integers(0, 1))
        partition = Partition((name,), labels)
        axes = [axis for axis in axes if axis != name]
    return QueryBlock(counting([draw(ranges(axis)) for axis in axes]), partition)


asked_blocks = st.one_of(range_counts(), range_counts(), blocks(whole=True)).filter(
    lambda block: not block.query.is_constant
)


def rank(rows: Sequence[Sequence[object]]) -> int:
    return int(np.linalg.matrix_rank(np.array(rows, dtype=np.float64))) if rows else 0


def indexed(history: Sequence[QueryBlock]) -> CutIndex:
    """The first half indexed, the second in a fork."""
    index = CutIndex()
    half = len(history) // 2
    for block in history[:half]:
        index.add(block)
    fork = index.fork()
    for block in history[half:]:
        fork.add(block)
    return fork


@settings(deadline=None, max_examples=400)
@given(st.lists(asked_blocks, max_size=7), asked_blocks)
def test_no_combination_of_what_stands_apart_is_in_the_span(
    history: list[QueryBlock], asked: QueryBlock
) -> None:
    scopes = {block.scope for block in history}
    history = [block for block in history if fingerprint(block) != fingerprint(asked)]
    if not indexed(history).is_apart(asked, scopes):
        return
    measured = [row for block in history for row in dense_rows(block)]
    own = dense_rows(asked)
    assert rank([*measured, *own]) == rank(measured) + len(own)


@settings(deadline=None, max_examples=200)
@given(st.lists(asked_blocks, max_size=6), asked_blocks)
def test_what_was_measured_itself_is_looked_at_beside_the_others(
    history: list[QueryBlock], asked: QueryBlock
) -> None:
    others = [block for block in history if fingerprint(block) != fingerprint(asked)]
    scopes = {block.scope for block in (*others, asked)}
    if indexed([*others, asked]).is_apart(asked, scopes):
        assert indexed(others).is_apart(asked, scopes)
    assert not indexed([asked, *others, asked]).is_apart(asked, scopes)


@settings(deadline=None)
@given(st.lists(asked_blocks, min_size=1, max_size=6), asked_blocks)
def test_only_rows_on_the_scopes_that_are_used_count(
    history: list[QueryBlock], asked: QueryBlock
) -> None:
    scopes = {block.scope for block in history[::2]}
    used = [block for block in history if block.scope in scopes]
    if all(fingerprint(block) != fingerprint(asked) for block in history):
        assert indexed(history).is_apart(asked, scopes) == indexed(used).is_apart(asked, scopes)


def between(axis: str, low: int, high: int) -> Factor:
    levels = np.arange(SIZES[axis])
    return Factor((axis,), ((low <= levels) & (levels <= high)).astype(np.int64))


def counted(*factors: Factor) -> QueryBlock:
    return QueryBlock(counting(factors))


def test_most_conjunctions_of_ranges_are_told_at_once() -> None:
    """The point of it: a history of forty ranges on three axes, and forty more."""
    random = np.random.default_rng(5)
    sizes = {"x": 60, "y": 80, "z": 20}

    def some() -> QueryBlock:
        axes = random.choice(sorted(sizes), size=2, replace=False)
        factors = []
        for axis in sorted(axes.tolist()):
            low, high = sorted(random.integers(0, sizes[axis], size=2).tolist())
            levels = np.arange(sizes[axis])
            factors.append(Factor((axis,), ((low <= levels) & (levels <= high)).astype(np.int64)))
        return QueryBlock(counting(factors))

    history, asked = [some() for _ in range(40)], [some() for _ in range(40)]
    index = indexed(history)
    told = [index.is_apart(block, {one.scope for one in history}) for block in asked]
    assert sum(told) >= 36


def test_rows_are_put_aside_one_after_the_other() -> None:
    """Each row has the next one's cut; only the last has one that no other has."""
    chain = [counted(between("b", 0, 1)), counted(between("b", 2, 2), between("c", 1, 1))]
    asked = counted(between("b", 1, 1), between("c", 1, 1))
    scopes = {block.scope for block in chain}
    assert indexed(chain).is_apart(asked, scopes)
    # With a row that ends where the last one does, all of them may add up to something.
    closing = counted(between("b", 1, 2), between("c", 1, 1))
    assert not indexed([*chain, closing]).is_apart(asked, {*scopes, closing.scope})


def test_groups_whose_total_is_known_do_not_stand_apart() -> None:
    """No group is estimable, and yet what is known of their sum will narrow every one of them."""
    women_and_men = QueryBlock(counting([between("a", 1, 1)]), Partition(("c",), np.arange(2)))
    total = counted(between("a", 1, 1))
    assert indexed([]).is_apart(women_and_men, set())
    assert not indexed([total]).is_apart(women_and_men, {total.scope})


def test_of_what_is_no_product_nothing_is_said() -> None:
    one, other = Term(1 * counting().terms[0].scale, (between("a", 0, 1),)), counting().terms[0]
    summed = QueryBlock(LinearQuery((one, other)))
    assert rows_of(summed) is None
    assert not indexed([]).is_apart(summed, set())
    # It may have any cut on its axes.
    assert not indexed([summed]).is_apart(counted(between("a", 2, 2)), {("a",)})
    assert indexed([summed]).is_apart(counted(between("a", 2, 2)), set())


def test_a_search_that_takes_long_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    crossing = [counted(between("b", 0, level)) for level in range(3)]
    asked = counted(between("b", 1, 3))
    scopes = {block.scope for block in crossing}
    assert indexed(crossing).is_apart(asked, scopes)
    monkeypatch.setattr(module, "N_LOOKED_AT_MAX", 1)
    assert not indexed(crossing).is_apart(asked, scopes)
