"""Scopes that share a read: each is part of what is read, reads are few, and no score changes."""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.exact import choices as choosing
from accountant.exact import choices as reading
from accountant.exact.choices import N_CELLS_TOGETHER, chosen, read_together
from cube.axis import IntegerAxis
from cube.measurement import Weight
from cube.query import Partition
from cube.schema import Schema
from cube.statistic import Choice, ChoiceCandidate, Score
from tests.support.fakes import KnownTable

SIZES = (2, 2, 3, 2, 4, 2)


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 1000), min_size=4, max_size=8),
    st.integers(1, 4),
)
def test_a_scope_is_part_of_what_is_read_which_is_small_unless_the_scope_is_not(
    sizes: dict[str, int], most: int
) -> None:
    scopes = [
        scope for n_axes in range(1, most + 1) for scope in combinations(sorted(sizes), n_axes)
    ]
    for scope, read in read_together(scopes, sizes).items():
        assert set(scope) <= set(read)
        assert list(read) == sorted(set(read))
        wide = math.prod(sizes[axis] for axis in scope if sizes[axis] ** most > N_CELLS_TOGETHER)
        assert math.prod(sizes[axis] for axis in read) <= N_CELLS_TOGETHER * wide


def test_scopes_of_small_columns_share_a_few_reads_and_wide_columns_are_read_alone() -> None:
    small = [f"c{place:02}" for place in range(16)]
    scopes = list(combinations(small, 4))
    reads = set(read_together(scopes, dict.fromkeys(small, 2)).values())
    assert tuple(small) in reads
    assert len(reads) == 2**4 - 1  # all but the empty union of four groups of four columns
    wide = dict.fromkeys(small, 10_000)
    assert read_together(scopes, wide) == {scope: scope for scope in scopes}


@pytest.mark.parametrize("score", [Score.DISTANCE, Score.INFORMATION])
def test_scores_do_not_depend_on_what_is_read_together(
    monkeypatch: pytest.MonkeyPatch, score: Score
) -> None:
    axes = tuple(IntegerAxis(name=f"c{k}", low=0, high=n - 1) for k, n in enumerate(SIZES))
    schema = Schema(table="t", axes=axes, n_records_max=1000)
    records = np.random.default_rng(5).integers(0, SIZES, (400, len(SIZES)))
    views = tuple(Partition((one.name,), np.arange(one.size)) for one in axes)
    places = range(len(SIZES))
    candidates = tuple(
        ChoiceCandidate(child, parents)
        for child in places
        for n_parents in (1, 2, 3)
        for parents in combinations([one for one in places if one != child], n_parents)
    )
    choice = Choice(score, views, candidates)
    told: list[list[int]] = []

    def take(scores: Sequence[int], delta: int, weight: Weight) -> int:  # noqa: ARG001 - a fake
        told.append(list(scores))
        return 0

    monkeypatch.setattr(choosing, "exponential", take)
    n_reads = []
    for n_cells in (1, 2**8, 2**40):
        monkeypatch.setattr(reading, "N_CELLS_TOGETHER", n_cells)
        table = KnownTable(schema, records)
        chosen(choice, Weight.at_least(1), table.measure, schema)
        n_reads.append(len(table.scopes_read))
    assert told[0] == told[1] == told[2]
    assert len(set(told[0])) > 1
    n_scopes = sum(math.comb(len(SIZES), n_axes) for n_axes in (2, 3, 4))
    assert n_scopes == n_reads[0] > n_reads[1] > n_reads[2] == 1
