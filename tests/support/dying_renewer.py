"""A process that replaces a table's data, charges and measures, over and over, until it is killed.

The data of generation n has a thousand rows times n, so that a value with a little noise says which
data it was measured of. Processes read data late: they go on with what they have until the ledger
says that it is another generation's.
"""

import random
from fractions import Fraction
from pathlib import Path

import numpy as np

from accountant.gate.gate import Gate
from accountant.gate.opening import Funds, open_table, renew_table
from accountant.ledger.history.raises import StalePlan
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.measurement import PlannedMeasurement, Weight
from cube.query import QueryBlock, counting
from cube.refusals import DataChanged, SourceUnavailable
from tests.support.fakes import KnownTable
from tests.support.seven_people import SCHEMA

ROWS_EACH = 64  # of a generation more than the one before
WEIGHT = Weight(2**40)  # noise of one row or so
EVERYTHING = QueryBlock(counting())
FUNDS = Funds(Fraction(10**6))


def data_of(generation: int) -> KnownTable:
    """The data of one generation."""
    return KnownTable(SCHEMA, np.zeros((ROWS_EACH * generation, 2), dtype=np.int64))


def live(path: str, seed: int) -> None:
    """Go on from where the ledger is."""
    moments = random.Random(seed)  # noqa: S311 - moments of a test
    with open_ledger(Path(path)) as ledger:
        gate = _opened(ledger)
        while True:
            try:
                _step(ledger, gate, moments)
            except (SourceUnavailable, StalePlan, RuntimeError, ValueError):
                gate.refresh()  # the other process was faster
                if moments.random() < 1 / 2:
                    gate.read_from(data_of(gate.history.generations.number))


def _opened(ledger: Ledger) -> Gate:
    while True:
        number = ledger.history(SCHEMA.table).generations.number
        try:
            return open_table(ledger, SCHEMA, FUNDS, data_of(number), SystemNoise())
        except DataChanged:  # the other process has begun a generation meanwhile
            ledger.refresh()


def _step(ledger: Ledger, gate: Gate, moments: random.Random) -> None:
    """Perhaps a generation; whatever waits; a purchase, and a raise of it."""
    if moments.random() < 1 / 4:
        number = gate.history.generations.number + 1
        renew_table(ledger, SCHEMA, FUNDS, data_of(number), "owner")
    gate.complete_pending()
    gate.measure([PlannedMeasurement(EVERYTHING, WEIGHT)], Payer("ann"), epsilon_cap=None)
    raised = PlannedMeasurement(EVERYTHING, Weight(2 * WEIGHT.units), len(gate.measurements()) - 1)
    gate.measure([raised], Payer("ann"), epsilon_cap=None)
