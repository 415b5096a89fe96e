"""A closed ledger of one table with an entry of each kind, and with raises after them."""

from fractions import Fraction
from pathlib import Path

import numpy as np

from accountant.ledger.charged import ChargedBlock
from accountant.ledger.entries import BudgetSet, Charge, Measured, TableBody, TableOpened
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import LatticeNoise
from cube.measurement import Weight
from cube.query import Factor, Partition, QueryBlock, counting

OPENED = TableOpened("schema", "data", Fraction(1))
WEIGHT = Weight.at_least(Fraction(1, 8))
COUNT = QueryBlock(counting([Factor(("a",), np.array([0, 1, 1], dtype=np.int64))]))
BY_GROUP = QueryBlock(counting(), Partition(("b",), np.array([0, 1, -1, 1], dtype=np.int64)))
CHARGE = Charge(
    Payer("ann"),
    tuple(ChargedBlock(block, LatticeNoise.for_weight(WEIGHT)) for block in (COUNT, BY_GROUP)),
    0,
    2 * WEIGHT.units,
)
VALUES = ((12345,), (-7, 2**61))
BODIES: list[TableBody] = [OPENED, BudgetSet(Fraction(13, 7)), CHARGE, Measured(3, VALUES)]
NOISE = CHARGE.blocks[0].laplace_noise


def raising(times: int, place: int, before: int) -> Charge:
    """A charge that raises the count from what is at `place` to a multiple of its first weight."""
    noise = NOISE.refined_to(Weight(times * WEIGHT.units))
    return Charge(Payer("bob"), (ChargedBlock(COUNT, noise, place),), before, before + WEIGHT.units)


RAISE = raising(2, 0, 2 * WEIGHT.units)
RAISES: list[TableBody] = [
    RAISE,
    Measured(5, ((12399,),)),
    raising(3, 2, 3 * WEIGHT.units),
    Measured(7, ((12388,),)),
]


def appended(ledger: Ledger, body: TableBody) -> int | None:
    return ledger.append("people", lambda _: body)


def write_short_ledger(path: Path) -> Path:
    """A closed ledger at `path` that holds one entry of each kind."""
    with open_ledger(path) as ledger:
        assert [appended(ledger, body) for body in BODIES] == [1, 2, 3, 4]
    return path


def raised_twice(path: Path) -> Path:
    """The same ledger, in which the count is then raised twice in a row."""
    with open_ledger(path) as ledger:
        assert [appended(ledger, body) for body in RAISES] == [5, 6, 7, 8]
    return path
