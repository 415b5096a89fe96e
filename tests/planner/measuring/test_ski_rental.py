"""Ski rental: what counts as rent for a scope, and what a purchase redeems."""

import numpy as np
import pytest

from accountant.ledger.entries import Charge, ChargedBlock, ChargedDistance
from accountant.ledger.limits import Payer
from accountant.noise.laplace import LatticeNoise
from cube.axis import IntegerAxis
from cube.block import QueryBlock
from cube.measurement import Weight
from cube.query import Factor, Scope, counting
from cube.schema import Schema
from cube.statistic import Distance
from planner.measuring.candidates import hierarchy
from planner.measuring.ski_rental import SkiRental

SCHEMA = Schema(
    table="t",
    axes=tuple(IntegerAxis(name=name, low=0, high=2) for name in "abc"),
    n_records_max=1000,
)
NOISE = LatticeNoise.for_weight(Weight.at_least(1.0))


def narrow(*axes: str) -> QueryBlock:
    """A row on a scope."""
    values = np.array([1, 0, 1], dtype=np.int64)
    return QueryBlock(counting([Factor((name,), values) for name in axes]))


def cells(scope: Scope) -> QueryBlock:
    """Every cell of a scope."""
    return hierarchy(scope, SCHEMA)[0]


def paid(*purchases: tuple[int, QueryBlock]) -> SkiRental:
    """The rental after purchases at these prices, one after the other."""
    rental, spent = SkiRental(), 0
    for units, block in purchases:
        rental.add([Charge(Payer("me"), (ChargedBlock(block, NOISE),), spent, spent + units)])
        spent += units
    return rental


def test_rent_counts_for_every_scope_that_contains_it() -> None:
    rental = paid((5, narrow("a")), (7, narrow("a", "b")), (9, narrow("c")))
    assert rental.on(("a",)) == 5
    assert rental.on(("a", "b")) == 12
    assert rental.on(("a", "b", "c")) == 21
    assert rental.on(("b",)) == 0
    assert rental.scopes == (("c",), ("a", "b"), ("a",))
    assert rental.n_charges == 3


def test_a_purchase_redeems_rent_once() -> None:
    rental = paid((5, narrow("a")), (7, narrow("a", "b")), (10, cells(("a", "b"))))
    assert rental.on(("a", "b")) == 2
    rental = paid((5, narrow("a")), (20, cells(("a", "b"))), (3, narrow("b")))
    assert rental.on(("a", "b")) == 3
    assert rental.on(("a",)) == 0


def test_cells_count_as_rent_only_for_larger_scopes() -> None:
    rental = paid((4, cells(("a",))))
    assert rental.on(("a",)) == 0
    assert rental.on(("a", "b")) == 4


def test_a_free_purchase_is_not_rent() -> None:
    assert paid((0, narrow("a"))).scopes == ()


def test_the_cost_of_statistics_is_not_rent() -> None:
    rental = SkiRental()
    asked = ChargedDistance(Distance(narrow("a"), (3,)), NOISE)
    rental.add([Charge(Payer("me"), (), 0, 5, (asked,))])
    assert rental.n_charges == 1
    assert rental.on(("a",)) == 0


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_rent_is_computed_from_the_charges_alone(order: tuple[int, int]) -> None:
    charges = [(5, narrow("a")), (6, narrow("b"))]
    rental = paid(*(charges[place] for place in order))
    assert rental.on(("a", "b")) == 11
