"""What the cuts of rows decide, against linear algebra on every cell of a small cube."""

import threading
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cube.encoding import fingerprint
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Scope, Term, counting
from inference.blue import combined_rows as module
from inference.blue.combined_rows import CutIndex, rows_of
from tests.support.cubes import SIZES, blocks, dense_rows
from tests.support.examples import examples


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
        index.add([block])
    fork = index.fork()
    for block in history[half:]:
        fork.add([block])
    return fork


def stands_apart(index: CutIndex, asked: QueryBlock, scopes: Collection[Scope]) -> bool:
    return index.related(asked, scopes) == frozenset()


@settings(deadline=None, max_examples=examples(150))
@given(st.lists(asked_blocks, max_size=7), asked_blocks)
def test_no_combination_of_what_stands_apart_is_in_the_span(
    history: list[QueryBlock], asked: QueryBlock
) -> None:
    scopes = {block.scope for block in history}
    history = [block for block in history if fingerprint(block) != fingerprint(asked)]
    if not stands_apart(indexed(history), asked, scopes):
        return
    measured = [row for block in history for row in dense_rows(block)]
    own = dense_rows(asked)
    assert rank([*measured, *own]) == rank(measured) + len(own)


@settings(deadline=None, max_examples=examples(150))
@given(st.lists(asked_blocks, min_size=1, max_size=8), asked_blocks)
def test_the_related_blocks_are_all_that_the_best_estimate_needs(
    history: list[QueryBlock], asked: QueryBlock
) -> None:
    """Whether the block was measured itself or not: its own rows are put beside the related."""
    scopes = {block.scope for block in history}
    related = indexed(history).related(asked, scopes)
    if related is None:
        return
    own = fingerprint(asked)
    assert own not in related
    every = [row for block in history for row in dense_rows(block)]
    few = [
        row
        for block in history
        if fingerprint(block) in {*related, own}
        for row in dense_rows(block)
    ]
    for row in dense_rows(asked):
        best, is_known = least_squares(every, row)
        found, is_still_known = least_squares(few, row)
        assert is_known == is_still_known
        assert not is_known or found == pytest.approx(best, rel=1e-6)


def least_squares(rows: Sequence[Sequence[object]], wanted: Sequence[object]) -> tuple[float, bool]:
    """The length of the shortest combination of rows that comes to what is wanted, if one does."""
    target = np.array(wanted, dtype=np.float64)
    matrix = np.array(rows, dtype=np.float64).reshape(len(rows), target.size)
    solution, *_ = np.linalg.lstsq(matrix.T, target, rcond=1e-10)
    return float(np.linalg.norm(solution)), bool(np.allclose(solution @ matrix, target, atol=1e-7))


@settings(deadline=None)
@given(st.lists(asked_blocks, min_size=1, max_size=6), asked_blocks)
def test_only_rows_on_the_scopes_that_are_used_count(
    history: list[QueryBlock], asked: QueryBlock
) -> None:
    scopes = {block.scope for block in history[::2]}
    used = [block for block in history if block.scope in scopes]
    assert indexed(history).related(asked, scopes) == indexed(used).related(asked, scopes)


def between(axis: str, low: int, high: int) -> Factor:
    levels = np.arange(SIZES[axis])
    return Factor((axis,), ((low <= levels) & (levels <= high)).astype(np.int64))


def counted(*factors: Factor) -> QueryBlock:
    return QueryBlock(counting(factors))


def test_most_conjunctions_of_ranges_are_decided_by_cuts() -> None:
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
    told = [stands_apart(index, block, {one.scope for one in history}) for block in asked]
    assert sum(told) >= 36


def test_rows_are_put_aside_one_after_the_other() -> None:
    """Each row has the next one's cut; only the last has one that no other has."""
    chain = [counted(between("b", 0, 1)), counted(between("b", 2, 2), between("c", 1, 1))]
    asked = counted(between("b", 1, 1), between("c", 1, 1))
    scopes = {block.scope for block in chain}
    assert stands_apart(indexed(chain), asked, scopes)
    # With a row that ends where the last one does, all of them may add up to something.
    closing = counted(between("b", 1, 2), between("c", 1, 1))
    assert not stands_apart(indexed([*chain, closing]), asked, {*scopes, closing.scope})


def test_groups_whose_total_is_known_do_not_stand_apart() -> None:
    """No group is estimable, and yet what is known of their sum will narrow every one of them."""
    women_and_men = QueryBlock(counting([between("a", 1, 1)]), Partition(("c",), np.arange(2)))
    total = counted(between("a", 1, 1))
    assert stands_apart(indexed([]), women_and_men, set())
    assert not stands_apart(indexed([total]), women_and_men, {total.scope})


def test_blocks_that_are_not_products_are_left_undecided() -> None:
    one, other = Term(1 * counting().terms[0].scale, (between("a", 0, 1),)), counting().terms[0]
    summed = QueryBlock(LinearQuery((one, other)))
    assert rows_of(summed) is None
    assert not stands_apart(indexed([]), summed, set())
    # It may have any cut on its axes, and so bring in any row that has one.
    assert not stands_apart(indexed([summed]), counted(between("a", 2, 2)), {("a",)})
    assert stands_apart(indexed([summed]), counted(between("a", 2, 2)), set())
    history = [summed, counted(between("a", 0, 1))]
    assert indexed(history).related(counted(), {("a",)}) is None
    assert indexed(history).related(counted(between("b", 0, 1)), {("a",)}) == frozenset()


def test_a_long_search_is_left_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    crossing = [counted(between("b", 0, level)) for level in range(3)]
    asked = counted(between("b", 1, 3))
    scopes = {block.scope for block in crossing}
    assert stands_apart(indexed(crossing), asked, scopes)
    monkeypatch.setattr(module, "N_LOOKED_AT_MAX", 1)
    assert not stands_apart(indexed(crossing), asked, scopes)


def of_scopes(n: int) -> list[QueryBlock]:
    """Counts of ranges on every scope of one to three axes, several on each."""
    rng = np.random.default_rng(3)
    found = []
    for _ in range(n):
        axes = rng.permutation(sorted(SIZES))[: int(rng.integers(1, 4))]
        factors = []
        for axis in axes.tolist():
            first, last = np.sort(rng.integers(0, SIZES[axis] + 1, size=2))
            values = np.zeros(SIZES[axis], dtype=np.int64)
            values[first : max(last, first + 1)] = 1
            factors.append(Factor((axis,), values))
        found.append(QueryBlock(counting(factors)))
    return [block for block in found if block.scope]


def test_blocks_are_examined_once_their_scope_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    examined = []

    def examining(block: QueryBlock) -> object:
        examined.append(block.scope)
        return rows_of(block)

    monkeypatch.setattr(module, "rows_of", examining)
    history = of_scopes(60)
    index, asked = indexed(history), history[0]
    assert not examined
    index.related(asked, {asked.scope})
    assert set(examined) == {asked.scope}
    n_examined = len(examined)
    index.snapshot().related(asked, {asked.scope})
    assert len(examined) == n_examined + 1  # what is asked itself


def test_threads_that_share_an_index_find_what_one_alone_finds() -> None:
    history = of_scopes(400)
    scopes = sorted({block.scope for block in history})
    alone = [indexed(history).related(block, scopes) for block in history[:40]]
    for _ in range(5):
        index = indexed(history)
        views = [index.snapshot() for _ in range(4)]
        start = threading.Barrier(len(views))

        def ask(view: CutIndex, first: int, start: threading.Barrier = start) -> list[object]:
            start.wait()
            order = [*range(first, 40), *range(first)]
            found = {place: view.related(history[place], scopes) for place in order}
            return [found[place] for place in range(40)]

        with ThreadPoolExecutor(len(views)) as pool:
            running = [pool.submit(ask, view, 10 * n) for n, view in enumerate(views)]
            assert all(one.result() == alone for one in running)
