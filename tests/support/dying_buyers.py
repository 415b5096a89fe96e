"""A process in which several threads buy on one ledger until somebody kills it.

Each thread wants one count ever more precisely: what the ledger has already is not bought again,
what was charged and not measured is completed when the table opens, and the rest is raised from
what there is. Whatever is released is first written to a file, one line each: the number of its
charge and the noisy values.
"""

import os
import threading
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import numpy as np

from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.ledger.history.raises import StalePlan
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger, open_shared_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.axis import IntegerAxis
from cube.encoding import fingerprint
from cube.measurement import Measurement, PlannedMeasurement, Weight
from cube.query import Factor, QueryBlock, counting
from cube.refusals import CannotStart, LedgerUnavailable
from cube.schema import Schema
from tests.support.fakes import KnownTable

N_BUYERS = 6
STEP = Weight.at_least(Fraction(1, 64))
BUDGET = Fraction(10**6)
SCHEMA = Schema(
    table="people", axes=(IntegerAxis(name="age", low=0, high=N_BUYERS - 1),), n_records_max=100
)
TABLE = KnownTable(SCHEMA, np.repeat(np.arange(N_BUYERS), 5)[:, None].astype(np.int64))
BLOCKS = tuple(
    QueryBlock(counting([Factor(("age",), np.eye(N_BUYERS, dtype=np.int64)[age])]))
    for age in range(N_BUYERS)
)


def opened(place: str, key: str) -> Ledger:
    """The ledger of a path, or of a database whose key is named too."""
    return open_shared_ledger(place, Path(key)) if key else open_ledger(Path(place))


def buy_until_killed(place: str, key: str, released: str) -> None:
    """Buy in threads; ends by itself only once the ledger is away."""
    descriptor = os.open(released, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with suppress(CannotStart), opened(place, key) as ledger:
        gate = open_table(ledger, SCHEMA, BUDGET, TABLE, SystemNoise())
        threads = [
            threading.Thread(target=_buy, args=(gate, block, descriptor)) for block in BLOCKS
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _buy(gate: Gate, block: QueryBlock, descriptor: int) -> None:
    while True:
        place = latest(gate, block)
        weight = STEP if place is None else _more(gate.measurements()[place])
        planned = PlannedMeasurement(block, weight, place)
        try:
            payment = gate.charge([planned], Payer("buyer"), epsilon_cap=None)
            bought = gate.complete(payment.seq)
        except StalePlan:  # another process was faster
            gate.refresh()
            continue
        except LedgerUnavailable:
            return
        for one in bought or ():
            os.write(descriptor, f"{payment.seq} {one.lattice_values[0]}\n".encode())


def _more(known: Measurement) -> Weight:
    return Weight(known.weight.units + STEP.units)


def latest(gate: Gate, block: QueryBlock) -> int | None:
    """The place of the most precise measurement of a block."""
    name = fingerprint(block)
    places = [
        place for place, one in enumerate(gate.measurements()) if fingerprint(one.block) == name
    ]
    return max(places, default=None)
