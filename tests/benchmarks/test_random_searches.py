"""The benchmark of random searches reads charges, refusals and prices as they are."""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.first_asked import COUNT, Asked
from benchmarks.first_tables import TABLES
from benchmarks.random_searches import Case, Outcome, World, bars_of, opened, outcome
from planner.decision import surer
from planner.workload import RequestedTarget

N_ROWS = 3000
BUDGET = Fraction(10)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with opened(TABLES[0], N_ROWS, np.random.default_rng(1)) as found:
        yield found


def counting(target: RequestedTarget, per_query: Fraction | None = None) -> Case:
    return Case(Asked("count", "loans", (), (COUNT,)), target, BUDGET, per_query, None)


def price(half_width: float, confidence: float) -> float:
    """Of Laplace noise on a count, which exceeds h with probability exp(-epsilon h)."""
    return -math.log(1 - confidence) / half_width


def test_a_half_width_costs_what_laplace_noise_costs(world: World) -> None:
    found = outcome(world, counting(RequestedTarget(half_width=100.0, confidence=0.9)))
    assert not found.code
    assert found.left == BUDGET
    assert found.spent == pytest.approx(price(100.0, 0.9), rel=1e-3)
    assert [one.truth for one in found.shown] == [N_ROWS]


def test_a_relative_target_is_held_against_the_price_of_what_it_reached(world: World) -> None:
    found = outcome(world, counting(RequestedTarget(relative=0.1, confidence=0.95)))
    (count,) = found.shown
    assert count.half_width <= 0.1 * count.value
    assert found.directly == pytest.approx(price(count.half_width, surer(0.95)), rel=1e-3)


def test_a_refusal_by_a_limit_charges_nothing(world: World) -> None:
    target = RequestedTarget(half_width=1.0, confidence=0.95)
    found = outcome(world, counting(target, Fraction(1, 100)))
    assert (found.code, found.spent, found.share_for_nothing) == ("limit_reached", 0.0, 0.0)
    assert not found.is_for_nothing


def test_what_is_charged_without_an_answer_fails_the_bars() -> None:
    case = counting(RequestedTarget(half_width=1.0, confidence=0.95))
    refused = Outcome(case, left=4.0, spent=1.0, code="target_not_reached", shown=())
    share, nothing, *_ = bars_of([refused])
    assert (share.value, share.holds) == (0.25, False)
    assert (nothing.value, nothing.holds) == (1, False)
