"""The least width of rows is at most what the estimator says of them, and not far from it."""

import itertools
import math

import numpy as np
import pytest

from cube.axis import BooleanAxis, IntegerAxis
from cube.classes import tiled
from cube.pieces import runs_of
from cube.query import Factor, Partition, QueryBlock, Scope, counting
from cube.schema import Schema
from planner.measuring.candidates import families, may_be_whole
from planner.measuring.hindsight import Demand, Hindsight, least_widths
from planner.measuring.weights import LAPLACE

SCHEMA = Schema(
    table="t",
    axes=(
        BooleanAxis(name="b"),
        IntegerAxis(name="long", low=0, high=39_999),
        IntegerAxis(name="x", low=0, high=99),
        IntegerAxis(name="y", low=0, high=249),
        IntegerAxis(name="z", low=0, high=59),
    ),
    n_records_max=10**6,
)
HALF_WIDTH = 1e6
SCOPES = [("x",), ("b", "x"), ("x", "z"), ("long",), ("x", "y"), ("b", "x", "y")]


def a_row(rng: np.random.Generator, scope: Scope) -> QueryBlock:
    """A product of ranges, or of what one of them leaves out, on some of the axes."""
    factors = []
    for name, size in zip(scope, SCHEMA.sizes(scope), strict=True):
        first, last = np.sort(rng.integers(0, size, size=2))
        held = np.zeros(size, dtype=np.int64)
        held[first : last + 1] = rng.integers(1, 4)
        factors.append(Factor((name,), 3 - held if rng.random() < 0.2 else held))
    return QueryBlock(counting(factors))


def width_alone(family: tuple[QueryBlock, ...], block: QueryBlock, confidence: float) -> float:
    """What the family alone says of the widest row, at Laplace noise of scale 1."""
    demand = Demand(block, HALF_WIDTH)
    units = Hindsight(SCHEMA).needed_units(family, demand, confidence, LAPLACE)
    return math.inf if units is None else HALF_WIDTH * float(LAPLACE.cost(units))


@pytest.mark.parametrize("scope", SCOPES, ids=".".join)
def test_no_row_is_known_better_than_that(scope: Scope) -> None:
    rng = np.random.default_rng(11)
    blocks = [a_row(rng, scope) for _ in range(12)]
    n_said = 0
    for family, block in itertools.product(families(scope, SCHEMA), blocks):
        confidence = float(rng.choice([0.3, 0.8, 0.905, 0.95, 0.999]))
        (least,) = least_widths(family, [block], confidence, SCHEMA)
        n_said += least > 0
        assert least <= width_alone(family, block, confidence)
    assert n_said > len(blocks)  # it does say something


def test_of_cells_it_is_nearly_the_width() -> None:
    rng = np.random.default_rng(3)
    (family, *_) = families(("x", "z"), SCHEMA)
    for _ in range(10):
        block = a_row(rng, ("x", "z"))
        width = width_alone(family, block, 0.95)
        (least,) = least_widths(family, [block], 0.95, SCHEMA)
        assert 0.9 * width <= least <= width


def test_of_groups_it_is_that_of_the_mean_row() -> None:
    held = (np.arange(100) < 50).astype(np.int64)
    grouped = QueryBlock(
        counting([Factor(("x",), held)]), Partition(("z",), np.arange(60, dtype=np.int64) // 20)
    )
    for family in families(("x", "z"), SCHEMA):
        (least,) = least_widths(family, [grouped], 0.95, SCHEMA)
        assert 0 < least <= width_alone(family, grouped, 0.95)


def test_nothing_is_said_of_groups_that_leave_cells_out() -> None:
    labels = np.where(np.arange(60) < 10, -1, 0).astype(np.int64)
    block = QueryBlock(counting(), Partition(("z",), labels))
    assert may_be_whole(("z",), SCHEMA)
    assert least_widths(families(("z",), SCHEMA)[0], [block], 0.95, SCHEMA) == [0]


def test_groups_of_two_long_columns_are_never_written_out() -> None:
    """Of 2**40 cells, the groups of their halves: as wide as a count of a half of each."""
    size = 2**20
    axes = tuple(IntegerAxis(name=name, low=0, high=size - 1) for name in "ab")
    schema = Schema(table="t", axes=axes, n_records_max=10**6)
    halves = runs_of((np.arange(size) >= size // 2).astype(np.int64))
    tiles = tiled((halves, halves), np.arange(4, dtype=np.int64).reshape(2, 2))
    grouped = QueryBlock(counting(), Partition(("a", "b"), tiles))
    held = (np.arange(size) < size // 2).astype(np.int64)
    alone = QueryBlock(counting([Factor((name,), held) for name in "ab"]))
    (family, *_) = families(("a", "b"), schema)
    widths = least_widths(family, [grouped, alone], 0.95, schema)
    assert widths[0] == pytest.approx(widths[1])
    assert widths[0] > 0
