"""Candidates: which blocks a strategy proposes, and the structure of hierarchies."""

import itertools

import numpy as np
import pytest

from cube.axis import BooleanAxis, CategoryAxis, IntegerAxis
from cube.block import QueryBlock
from cube.query import Factor, counting
from cube.schema import Schema
from planner.measuring.candidates import (
    BRANCHING,
    hierarchy,
    is_every_cell,
    query_itself,
    wide_candidates,
)
from planner.measuring.strategy import Strategy

SCHEMA = Schema(
    table="t",
    axes=(
        IntegerAxis(name="age", low=0, high=999),
        CategoryAxis(name="city", values=("Oslo", "Rome")),
        BooleanAxis(name="member"),
        IntegerAxis(name="visits", low=0, high=9),
        IntegerAxis(name="wide", low=0, high=9_999),
    ),
    n_records_max=1000,
)


def test_a_hierarchy_is_nested_and_every_level_counts_every_cell_once() -> None:
    levels = hierarchy(("age", "city"), SCHEMA)
    assert [level.n_rows for level in levels] == [2000, 2 * -(-1000 // BRANCHING), 2 * 4]
    assert is_every_cell(levels[0])
    for fine, coarse in itertools.pairwise(levels):
        assert fine.partition is not None
        assert coarse.partition is not None
        pairs = np.stack([fine.partition.labels.ravel(), coarse.partition.labels.ravel()])
        assert np.unique(pairs, axis=1).shape[1] == fine.n_rows
        assert coarse.partition.labels.min() == 0
        assert not is_every_cell(coarse)


def test_only_ordered_columns_have_intervals() -> None:
    assert len(hierarchy(("city", "member"), SCHEMA)) == 1
    assert len(hierarchy(("visits",), SCHEMA)) == 1  # too short to gain from it


@pytest.mark.parametrize(
    ("strategy", "names"),
    [
        (Strategy.AUTO, ["cells", "dyadic", "cuboid", "dyadic"]),
        (Strategy.CELLS, ["cells", "cuboid"]),
        (Strategy.DYADIC, ["dyadic", "dyadic"]),
    ],
)
def test_a_strategy_proposes_its_candidates(strategy: Strategy, names: list[str]) -> None:
    found = wide_candidates(strategy, [("age",), ("age", "city"), ("wide",), ()], SCHEMA)
    assert [candidate.name for candidate in found] == names
    assert {candidate.scope for candidate in found} == {("age",), ("age", "city")}


def test_the_query_itself_is_in_lowest_terms() -> None:
    factor = Factor(("visits",), np.array([0, 2] * 5, dtype=np.int64))
    candidate = query_itself(QueryBlock(counting([factor])))
    (block,) = candidate.blocks
    assert candidate.scope == ("visits",)
    assert block.query.bound == 1


@pytest.mark.parametrize(
    ("block", "answer"),
    [
        (QueryBlock(counting()), False),
        (QueryBlock(counting([Factor(("visits",), np.arange(10, dtype=np.int64))])), False),
        (hierarchy(("member", "visits"), SCHEMA)[0], True),
    ],
)
def test_blocks_of_every_cell_are_recognised(block: QueryBlock, answer: bool) -> None:
    assert is_every_cell(block) is answer
