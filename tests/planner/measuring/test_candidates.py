"""Candidates: which blocks a strategy proposes, and the structure of hierarchies."""

import itertools

import numpy as np
import pytest

from cube.axis import BooleanAxis, CategoryAxis, IntegerAxis
from cube.query import Factor, QueryBlock, Scope, counting
from cube.schema import Schema
from inference.blue.hierarchy_reader import divided
from planner.measuring.candidates import (
    BRANCHING,
    N_COARSE_CUBOID_CELLS_MAX,
    Strategy,
    families,
    may_be_whole,
    query_itself,
    wide_candidates,
)

SCHEMA = Schema(
    table="t",
    axes=(
        IntegerAxis(name="age", low=0, high=999),
        CategoryAxis(name="city", values=("Oslo", "Rome")),
        BooleanAxis(name="member"),
        IntegerAxis(name="visits", low=0, high=9),
        IntegerAxis(name="wide", low=0, high=99_999),
        IntegerAxis(name="hour", low=1, high=40),
        IntegerAxis(name="quarter", low=1, high=25),
    ),
    n_records_max=1000,
)


@pytest.mark.parametrize(
    "scope", [("age",), ("age", "city"), ("age", "visits"), ("hour", "quarter")]
)
def test_every_level_counts_every_cell_once_and_levels_are_nested(scope: Scope) -> None:
    for levels in families(scope, SCHEMA):
        assert levels[0].n_rows == SCHEMA.n_cells(scope)
        for level in levels:
            assert level.partition is not None
            assert level.partition.labels.min() == 0
            finest = levels[0].partition
            assert finest is not None
            pairs = np.stack([finest.labels.ravel(), level.partition.labels.ravel()])
            assert np.unique(pairs, axis=1).shape[1] == levels[0].n_rows


def test_hierarchies_have_two_to_four_levels_over_the_longest_column() -> None:
    (cells,), *hierarchies = families(("age", "city"), SCHEMA)
    assert cells.n_rows == 2000
    n_rows = [[level.n_rows for level in levels] for levels in hierarchies]
    assert n_rows == [[2000, 2 * 32], [2000, 2 * 100, 2 * 10], [2000, 2 * 167, 2 * 28, 2 * 5]]


def test_over_two_columns_a_hierarchy_has_the_products_of_their_intervals() -> None:
    *_, both = families(("hour", "quarter"), SCHEMA)
    assert [level.n_rows for level in both] == [40 * 25, 40 * 5, 6 * 25, 6 * 5]


def test_only_long_ordered_columns_have_intervals() -> None:
    assert len(families(("city", "member"), SCHEMA)) == 1
    assert len(families(("visits",), SCHEMA)) == 1  # too short to gain from it


def test_a_fixed_hierarchy_has_no_more_children_than_its_branching() -> None:
    (found,) = wide_candidates(Strategy.DYADIC, [("age",)], SCHEMA)
    n_rows = [block.n_rows for block in found.blocks]
    assert n_rows == [1000, 100, 10]
    assert all(fine <= coarse * BRANCHING for fine, coarse in itertools.pairwise(n_rows))


@pytest.mark.parametrize(
    ("strategy", "names"),
    [
        (Strategy.AUTO, ["cells", *["dyadic"] * 3, "cuboid", *["dyadic"] * 6]),
        (Strategy.CELLS, ["cells", "cuboid"]),
        (Strategy.DYADIC, ["dyadic", "dyadic", "dyadic"]),
    ],
)
def test_a_strategy_proposes_its_candidates(strategy: Strategy, names: list[str]) -> None:
    found = wide_candidates(strategy, [("age",), ("age", "city"), ("wide",), ()], SCHEMA)
    assert [candidate.name for candidate in found] == names
    scopes = {candidate.scope for candidate in found}
    assert scopes - {("wide",)} == {("age",), ("age", "city")}


@pytest.mark.parametrize(
    ("scope", "n_finest"),
    [(("wide",), 7_693), (("age", "wide"), 125 * 131), (("city", "wide"), 2 * 7_693)],
)
def test_where_cells_are_many_the_finest_blocks_are_intervals(scope: Scope, n_finest: int) -> None:
    assert not may_be_whole(scope, SCHEMA)
    for levels in families(scope, SCHEMA):
        assert levels[0].n_rows == n_finest <= N_COARSE_CUBOID_CELLS_MAX
        finest = divided(levels[0])
        assert finest is not None
        for level in levels[1:]:
            coarser = divided(level)
            assert coarser is not None
            assert all(a.refines(b) for a, b in zip(finest, coarser, strict=True))


def test_where_intervals_do_not_make_cells_few_there_is_no_family() -> None:
    many = CategoryAxis(name="word", values=tuple(map(str, range(10_000))))
    schema = Schema(table="t", axes=(*SCHEMA.axes, many), n_records_max=1000)
    assert not families(("word", "city"), schema)
    assert not families(("wide", "word"), schema)
    assert not families((), schema)


def test_the_query_itself_is_in_lowest_terms() -> None:
    factor = Factor(("visits",), np.array([0, 2] * 5, dtype=np.int64))
    candidate = query_itself(QueryBlock(counting([factor])))
    (block,) = candidate.blocks
    assert candidate.scope == ("visits",)
    assert block.query.bound == 1
