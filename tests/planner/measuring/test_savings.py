"""The weight of a wide purchase: that of all rows rented if they are worth it, else of a part."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

from accountant.gate.opening import open_table
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from cube.axis import CategoryAxis
from cube.encoding import fingerprint
from cube.query import Factor, QueryBlock, counting
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.measuring.candidates import Strategy
from planner.measuring.offers import Offer
from planner.measuring.weights import GaussianOffer
from planner.workload import Wanted
from proxy.tables.private_table import ServedTable
from tests.support.fakes import KnownTable, NoNoise

N_LEVELS = 8  # without an order, so that only cells are wide
SCHEMA = Schema(
    table="t",
    axes=(CategoryAxis(name="x", values=tuple("abcdefgh")),),
    n_records_max=1000,
)

Asked = tuple[tuple[int, ...], float]  # levels, and a half-width


def wanted(asked: Asked) -> Wanted:
    """The count of some levels."""
    levels, half_width = asked
    holds = np.isin(np.arange(N_LEVELS), levels).astype(np.int64)
    block = QueryBlock(counting([Factor(("x",), holds)])).primitive[0]
    return Wanted(block, AccuracyTarget(half_width=half_width, confidence=0.95))


@contextmanager
def table_after(folder: Path, rented: Sequence[Asked], budget: Fraction) -> Iterator[ServedTable]:
    """A table of which rows were bought one by one."""
    source = KnownTable(SCHEMA, np.zeros((0, 1), dtype=np.int64))
    with open_ledger(folder / "t.ledger") as ledger:
        gate = open_table(ledger, SCHEMA, budget, source, NoNoise())
        target = wanted(rented[0]).target
        bought = ServedTable(SCHEMA, target, gate, Strategy.QUERY)
        for asked in rented:
            bought.acquire([wanted(asked)], Payer("me"), None)
        yield ServedTable(SCHEMA, target, gate, Strategy.AUTO)


def chosen(table: ServedTable, asked: Asked) -> Offer:
    """What would be bought for a row."""
    snapshot = table.snapshot()
    one = [wanted(asked)]
    (offers,) = snapshot.plan(one, snapshot.estimates(one)).offers
    return next(offer for offer in offers if offer.is_chosen)


WIDE = [((0, place), 60.0) for place in range(1, 7)]
PRECISE = (tuple(range(7)), 1.0)  # seven cells are much noisier than one row
PLENTY = Fraction(100)
BOTH_KINDS = GaussianOffer(Fraction(1, 10**9), Fraction(20), is_declared=True)
# The sum of two Laplace variables of scale 1 is beyond t with probability (1 + t / 2) exp(-t).
TWO_CELLS = brentq(lambda t: (1 + t / 2) * math.exp(-t) - 0.05, 1, 10)


def weight_of_cells(offer: Offer) -> float:
    """At what weight cells are bought, in epsilon."""
    assert offer.name == "cells"
    return float(Fraction(offer.plan[-1].weight.units, 2**40))


def at(half_width: float) -> object:
    """The weight of cells two of which are known to a half-width, at 95 %."""
    return pytest.approx(TWO_CELLS / half_width, rel=0.01)


def test_cells_are_priced_at_the_weight_that_would_have_answered_all(tmp_path: Path) -> None:
    with table_after(tmp_path, WIDE, PLENTY) as table:
        assert weight_of_cells(chosen(table, ((0, 7), 200.0))) == at(60.0)


def test_one_precise_row_does_not_set_the_weight(tmp_path: Path) -> None:
    with table_after(tmp_path, [*WIDE, PRECISE], PLENTY) as table:
        assert weight_of_cells(chosen(table, ((0, 7), 60.0))) == at(60.0)


def test_what_cannot_be_paid_is_not_priced(tmp_path: Path) -> None:
    """All of the rows would be worth it; what is left is enough for a part of them."""
    rented = [*WIDE, *(((0, place), 20.0) for place in range(1, 7))]
    with table_after(tmp_path, rented, PLENTY) as table:
        spent = table.budget().spent
        assert weight_of_cells(chosen(table, ((0, 7), 60.0))) == at(20.0)
    (tmp_path / "poor").mkdir()
    with table_after(tmp_path / "poor", rented, spent + Fraction(1, 10)) as table:
        assert weight_of_cells(chosen(table, ((0, 7), 60.0))) == at(60.0)


@pytest.mark.parametrize("offer", [None, BOTH_KINDS])
def test_where_no_search_is_made_the_choice_is_that_of_one(
    tmp_path: Path, offer: GaussianOffer | None
) -> None:
    """Every offer takes the search for what is needed beside cells that are held already."""
    draw = np.random.default_rng(3)
    source = KnownTable(SCHEMA, np.zeros((0, 1), dtype=np.int64))
    bought = []
    with open_ledger(tmp_path / "t.ledger") as ledger:
        gate = open_table(ledger, SCHEMA, PLENTY, source, NoNoise())
        table = ServedTable(SCHEMA, wanted(PRECISE).target, gate, Strategy.AUTO, gaussian=offer)
        for _ in range(60):
            levels = draw.permutation(N_LEVELS)[: int(draw.integers(1, N_LEVELS))]
            one = [wanted((tuple(levels.tolist()), float(draw.uniform(5, 60))))]
            snapshot = table.snapshot()
            known = snapshot.estimates(one)
            plans = [snapshot.plan(one, known, every_offer=every) for every in (False, True)]
            named = [
                [(fingerprint(one.block), one.weight, one.raised_from) for one in plan.planned]
                for plan in plans
            ]
            assert named[0] == named[1]
            bought += [
                offer.name for offers in plans[0].offers for offer in offers if offer.is_chosen
            ]
            table.acquire(one, Payer("me"), None)
    assert bought.count("cells") > 1
    assert bought.count("query") > 1
