"""Exact privacy losses of Laplace and Gaussian rows together, against what is charged for them.

The noise is on a coarse lattice, so that every law can be summed up value by value; beyond what is
summed, everything counts as exposed. Losses that are added up are rounded up to a grid.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.signal import fftconvolve

from accountant.cost.history_cost import CostState, price_of
from accountant.cost.zcdp_account import GaussianAccount, best_terms
from accountant.noise.lattice_noise import GaussianNoise, LatticeNoise
from cube.measurement import UNITS_PER_EPSILON, GaussianTerms, PlannedMeasurement, Precision, Weight
from cube.query import QueryBlock
from tests.support.cubes import blocks, dense_rows
from tests.support.examples import examples
from tests.support.seven_people import EVERYONE

Floats = NDArray[np.float64]

DELTA = Fraction(1, 10**5)
TERMS = best_terms(DELTA, Fraction(3))
GRID = 2.0**-9  # of losses
BINS = 2**14  # losses from -16 to 16
N_SCALES = 40  # of noise on either side
MOVED_MAX = 60  # or laws have too many values to be summed up
CONSTANT = GaussianAccount(TERMS, 0).units


def losses(planned: PlannedMeasurement, moved: int, shrunk: float = 1.0) -> Floats:
    """The law of the loss of a record that moves the row by so much, on the grid, rounded up."""
    if planned.is_gaussian:
        scale = 1 / math.sqrt(2 * float(planned.precision.exact))
        GaussianNoise(planned.precision, 1, 0, scale * (1 + 2**-40))
    else:
        scale = 1 / float(planned.laplace_weight.exact)
        LatticeNoise(planned.laplace_weight, 0, scale * (1 + 2**-40))
    scale *= shrunk
    reach = math.ceil(N_SCALES * scale)
    steps = np.arange(-reach, reach + 1, dtype=np.float64)

    def exponents(noise: Floats) -> Floats:
        return -np.square(noise / scale) / 2 if planned.is_gaussian else -np.abs(noise / scale)

    chances = np.exp(exponents(steps) - np.logaddexp.reduce(exponents(steps)))
    exact = exponents(steps) - exponents(steps - moved)
    found = np.ceil(exact / GRID - 1e-9).astype(int) + BINS // 2
    kept = found < BINS
    on_grid = np.zeros(BINS)
    np.add.at(on_grid, np.maximum(found[kept], 0), chances[kept])
    return on_grid


def delta_of(parts: Sequence[Floats], epsilon: float) -> float:
    """The least delta at which independent parts are private for an epsilon."""
    total = np.zeros(BINS)
    total[BINS // 2] = 1.0
    for part in parts:
        whole = np.maximum(fftconvolve(total, part), 0)
        total = whole[BINS // 2 : BINS // 2 + BINS]
        total[0] += whole[: BINS // 2].sum()
    loss = (np.arange(BINS) - BINS // 2) * GRID
    exposed = max(0.0, 1 - float(total.sum()))
    return exposed + float((total * np.maximum(0, 1 - np.exp(epsilon - loss))).sum())


def priced(plan: Sequence[PlannedMeasurement]) -> float:
    units = price_of(CostState(), 0, plan).units_after
    epsilon: float = (units + CONSTANT) / UNITS_PER_EPSILON
    return epsilon


def moves(planned: PlannedMeasurement) -> Floats:
    """By how much a record in each cell moves the block's rows."""
    rows = dense_rows(planned.block)
    sizes: Floats = np.abs(np.array([[int(value) for value in row] for row in rows])).sum(axis=0)
    return sizes


def is_small(block: QueryBlock) -> bool:
    return not block.query.is_constant and block.query.bound <= MOVED_MAX


@st.composite
def plans(draw: st.DrawFn) -> list[PlannedMeasurement]:
    """Rows of both kinds at prices of up to half an epsilon for the dearest cell."""
    plan = []
    whole = blocks(whole=True).filter(is_small)
    for _ in range(draw(st.integers(2, 4))):
        block = draw(whole)
        most = max(1, int(moves(PlannedMeasurement(block, Weight(1))).max()))
        epsilon = Fraction(draw(st.integers(5, 50)), 100)
        if draw(st.booleans()):
            precision = Precision.at_least(epsilon / TERMS.order / most**2)
            plan.append(PlannedMeasurement(block, precision, terms=TERMS))
        else:
            plan.append(PlannedMeasurement(block, Weight.at_least(epsilon / most)))
    return plan


@settings(deadline=None, max_examples=examples(30))
@given(plans())
def test_no_cell_loses_more_than_was_charged(plan: list[PlannedMeasurement]) -> None:
    epsilon = priced(plan)
    moved = np.stack([moves(planned) for planned in plan])
    of_size = [{int(size): losses(one, int(size)) for size in set(row)}
               for one, row in zip(plan, moved.tolist(), strict=True)]  # fmt: skip
    for cell in {tuple(column) for column in moved.T.tolist()}:
        parts = [known[size] for known, size in zip(of_size, cell, strict=True)]
        assert delta_of(parts, epsilon) <= float(DELTA)


def counted(weight: Weight | Precision, terms: GaussianTerms | None = None) -> PlannedMeasurement:
    return PlannedMeasurement(EVERYONE, weight, terms=terms)


MIXED = [
    counted(Precision.at_least(Fraction(1, 30)), TERMS),
    counted(Precision.at_least(Fraction(1, 20)), TERMS),  # what a raise draws is one more value
    counted(Weight.at_least(Fraction(1, 4))),
]


@pytest.mark.parametrize(("shrunk", "is_private"), [(1.0, True), (0.8, False)])
def test_noise_that_is_a_fifth_too_small_breaks_the_promise(
    shrunk: float, *, is_private: bool
) -> None:
    parts = [losses(planned, 1, shrunk) for planned in MIXED]
    assert (delta_of(parts, priced(MIXED)) <= float(DELTA)) is is_private


def test_without_the_constant_of_the_terms_the_promise_is_broken() -> None:
    parts = [losses(planned, 1) for planned in MIXED]
    assert delta_of(parts, priced(MIXED) - CONSTANT / UNITS_PER_EPSILON) > float(DELTA)


def test_stopping_and_choosing_after_what_was_seen_gains_no_more_than_delta() -> None:
    """A first value decides what the rest of the budget buys: nothing, Gaussian or Laplace noise.

    Who sees that the first loss was high buys more Gaussian noise, whose loss may be anything; who
    sees that it was in between buys Laplace noise; who sees that it was low stops.
    """
    first = counted(Precision.at_least(Fraction(1, 40)), TERMS)
    gaussian = counted(Precision.at_least(Fraction(1, 25)), TERMS)
    spent = price_of(CostState(), 0, [first, gaussian]).units_after
    left = spent - price_of(CostState(), 0, [first]).units_after
    laplace = counted(Weight(left))
    epsilon = (spent + CONSTANT) / UNITS_PER_EPSILON
    before = losses(first, 1)
    loss = (np.arange(BINS) - BINS // 2) * GRID
    high = loss > epsilon / 3
    between = ~high & (loss > 0)
    kinds = [(high, [losses(gaussian, 1)]), (between, [losses(laplace, 1)]), (loss <= 0, [])]
    delta = sum(delta_of([np.where(where, before, 0.0), *then], epsilon) for where, then in kinds)
    exposed = sum(1 - before[where].sum() for where, _ in kinds)  # counted where it does not occur
    assert delta - exposed <= float(DELTA)
