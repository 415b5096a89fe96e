"""Levels counted together: every answer stays the same, and rows outside a condition stay there."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from accountant.exact import choices as exponential_mechanism
from accountant.exact import counted_together
from accountant.exact.choices import chosen
from accountant.exact.counted_together import grouping_for, groupings_for
from accountant.exact.exact_answers import exact_answers
from accountant.gate.opening import open_table
from accountant.grouping import BY_ITSELF, NOT_COUNTED, Grouping, LevelRuns
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.source import CellCounts
from cube.axis import IntegerAxis
from cube.measurement import PlannedMeasurement, Weight
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Term, counting
from cube.refusals import TooLarge
from cube.schema import Schema
from cube.statistic import Choice, ChoiceCandidate, Score
from tests.support.cubes import SIZES, blocks, dense_rows
from tests.support.fakes import KnownTable, NoNoise
from tests.support.groupings import each

AXES = tuple(IntegerAxis(name=name, low=0, high=SIZES[name] - 1) for name in sorted(SIZES))
SMALL = Schema(table="cube", axes=AXES, n_records_max=30)
N_WIDE = 10_000  # so many levels that an array over them is kept as pieces
WIDE = Schema(
    table="wide",
    axes=(
        IntegerAxis(name="pay", low=0, high=N_WIDE - 1),
        IntegerAxis(name="town", low=0, high=N_WIDE - 1),
    ),
    n_records_max=10**6,
)


def records_at(cells: Sequence[int]) -> NDArray[np.int64]:
    sizes = [SIZES[name] for name in sorted(SIZES)]
    places = np.unravel_index(np.array(cells, dtype=np.int64), sizes)
    return np.stack(places, axis=1).astype(np.int64)


@settings(deadline=None)
@given(
    st.lists(blocks(whole=True), min_size=1, max_size=3), st.lists(st.integers(0, 71), max_size=30)
)
def test_answers_from_levels_counted_together_are_those_of_the_dense_rows(
    some: list[QueryBlock], cells: list[int]
) -> None:
    table = KnownTable(SMALL, records_at(cells))
    read = groupings_for(some, SMALL)
    assert sorted(place for _, places in read for place in places) == list(range(len(some)))
    for grouping, places in read:
        counts = table.measure(grouping)
        assert counts.counts.size <= grouping.n_cells_max
        for place in places:
            expected = [
                sum((row[one] for one in cells), Fraction(0)) for row in dense_rows(some[place])
            ]
            assert exact_answers(some[place], counts, SMALL) == expected


@settings(deadline=None)
@given(blocks(whole=True), st.integers(0, 71))
def test_a_cell_counts_as_one_with_the_same_coefficients_or_with_none(
    block: QueryBlock, cell: int
) -> None:
    """Cell by cell, against dense rows: what the proof says of each row."""
    (at,) = records_at([cell])
    grouping = grouping_for([block], SMALL)
    counted = at.copy()
    is_counted = True
    for name, runs in zip(grouping.scope, grouping.runs, strict=True):
        place = sorted(SIZES).index(name)
        (found,) = runs.at(at[place : place + 1])
        is_counted &= bool(found != NOT_COUNTED)
        counted[place] = max(found, 0)
    sizes = [SIZES[name] for name in sorted(SIZES)]
    as_cell = int(np.ravel_multi_index(tuple(counted), sizes))
    for row in dense_rows(block):
        assert row[cell] == (row[as_cell] if is_counted else 0)


def levels(*spans: tuple[int, int]) -> Factor:
    """The condition that a town is in some spans."""
    found = np.zeros(N_WIDE, dtype=np.int64)
    for start, end in spans:
        found[start:end] = 1
    return Factor(("town",), found)


def test_a_condition_is_one_level_and_what_is_outside_is_not_counted() -> None:
    (runs,) = grouping_for([QueryBlock(counting([levels((10, 20), (30, 40))]))], WIDE).runs
    assert runs.starts.tolist() == [0, 10, 20, 30, 40]
    assert runs.counted_as.tolist() == [NOT_COUNTED, 10, NOT_COUNTED, 10, NOT_COUNTED]
    assert runs.n_counted == 1


def test_the_common_refinement_counts_what_either_block_needs() -> None:
    some = [QueryBlock(counting([levels((10, 20))])), QueryBlock(counting([levels((15, 30))]))]
    (runs,) = grouping_for(some, WIDE).runs
    assert runs.counted_as.tolist() == [NOT_COUNTED, 10, 15, 20, NOT_COUNTED]


def test_levels_of_a_sum_are_counted_each_by_itself_where_the_condition_holds() -> None:
    """And where the sum has no pay, all of it is one: a table of 10**8 cells has 2,001 of them."""
    pay = Factor(("pay",), np.where(np.arange(N_WIDE) < 2000, np.arange(N_WIDE), 5))
    block = QueryBlock(LinearQuery((Term(Fraction(1), (pay, levels((10, 20)))),)))
    grouping = grouping_for([block], WIDE)
    pays, towns = grouping.runs
    assert (pays.starts.tolist(), pays.counted_as.tolist()) == ([0, 2000], [BY_ITSELF, 2000])
    assert towns.n_counted == 1
    assert grouping.n_cells_max == 2001
    rng = np.random.default_rng(7)
    records = rng.integers(0, N_WIDE, (5000, 2))
    records[:, 1] %= 40
    paid = np.where(records[:, 0] < 2000, records[:, 0], 5)
    expected = int(paid[(records[:, 1] >= 10) & (records[:, 1] < 20)].sum())
    counts = KnownTable(WIDE, records).measure(grouping)
    assert exact_answers(block, counts, WIDE) == [expected]


def test_groups_of_many_towns_are_as_many_cells() -> None:
    every_second = Partition(("town",), np.arange(N_WIDE, dtype=np.int64) % 2)
    grouping = grouping_for([QueryBlock(counting(), every_second)], WIDE)
    assert (grouping.n_cells_max, grouping.runs[0].n_runs) == (2, N_WIDE)


def test_blocks_are_read_apart_where_together_they_were_too_many_cells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    by_pay = QueryBlock(counting([levels((0, 1))]), Partition(("pay",), np.arange(N_WIDE) // 100))
    pay = Factor(("pay",), np.arange(N_WIDE, dtype=np.int64))
    total = QueryBlock(LinearQuery((Term(Fraction(1), (pay, levels((0, 1)))),)))
    assert len(groupings_for([by_pay, total], WIDE)) == 1
    monkeypatch.setattr(counted_together, "N_CELLS_READ_MAX", N_WIDE - 2)
    assert [places for _, places in groupings_for([by_pay, total], WIDE)] == [(0,), (1,)]


def test_too_many_cells_are_refused_before_anything_is_charged(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counted_together, "N_CELLS_READ_MAX", 1000)
    table = KnownTable(WIDE, np.zeros((3, 2), dtype=np.int64))
    gate = open_table(ledger, WIDE, Fraction(1), table, NoNoise())
    position = ledger.position
    few = Partition(("town",), np.arange(N_WIDE, dtype=np.int64) // 10)
    many = Partition(("town",), np.arange(N_WIDE, dtype=np.int64) // 9)
    quarter = Weight.at_least(Fraction(1, 4))
    with pytest.raises(TooLarge, match=r"1112 cells; at most 1000"):
        gate.measure(
            [PlannedMeasurement(QueryBlock(counting(), many), quarter)],
            Payer("ann"),
            epsilon_cap=None,
        )
    assert (ledger.position, table.scopes_read) == (position, [])
    plan = [PlannedMeasurement(QueryBlock(counting(), few), quarter)]
    (bought,) = gate.measure(plan, Payer("ann"), epsilon_cap=None)
    assert bought.values[:2].tolist() == [3.0, 0.0]


def test_scores_are_the_same_of_views_and_of_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    views = tuple(
        Partition((name,), np.arange(SIZES[name], dtype=np.int64) // 2) for name in ("a", "b", "d")
    )
    candidates = (ChoiceCandidate(0, (1,)), ChoiceCandidate(1, (0, 2)), ChoiceCandidate(2, (1,)))
    choice = Choice(Score.INFORMATION, views, candidates)
    rng = np.random.default_rng(3)
    table = KnownTable(SMALL, records_at(rng.integers(0, 72, 30).tolist()))
    n_cells: list[int] = []

    def read(grouping: Grouping) -> CellCounts:
        counts = table.measure(grouping)
        n_cells.append(counts.counts.size)
        return counts

    def read_each(grouping: Grouping) -> CellCounts:
        return read(each(SMALL, *grouping.scope))

    told: list[list[int]] = []

    def take(scores: Sequence[int], delta: int, weight: Weight) -> int:  # noqa: ARG001 - a fake
        told.append(list(scores))
        return 0

    monkeypatch.setattr(exponential_mechanism, "exponential", take)
    for reading in (read, read_each):
        chosen(choice, Weight.at_least(1), reading, SMALL)
    assert told[0] == told[1]
    assert n_cells[0] < n_cells[-1]


@pytest.mark.parametrize(
    ("starts", "counted_as"),
    [([1], [0]), ([0, 0], [0, 1]), ([0, 3], [0, 1]), ([0], [3]), ([0], [-3]), ([0, 1], [0])],
)
def test_runs_that_are_none_cannot_be_built(starts: list[int], counted_as: list[int]) -> None:
    with pytest.raises(ValueError, match="run"):
        LevelRuns(3, np.array(starts, dtype=np.int64), np.array(counted_as, dtype=np.int64))


def test_equal_groupings_have_equal_content_and_others_do_not() -> None:
    one = grouping_for([QueryBlock(counting([levels((10, 20))]))], WIDE)
    same = grouping_for([QueryBlock(counting([levels((10, 20))]))], WIDE)
    other = grouping_for([QueryBlock(counting([levels((10, 21))]))], WIDE)
    assert one.content == same.content != other.content
    assert each(WIDE, "town").content != one.content
