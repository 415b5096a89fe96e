"""A process that moves a horizon, accepts changes and buys, over and over, until it is killed.

Its table has a row for each day and kind; every few days the rows of a closed day change, in a way
that every process finds again from the ledger alone: so many changes were accepted.
"""

from fractions import Fraction
from pathlib import Path

import numpy as np

from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.ledger.history.raises import StalePlan
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.axis import CategoryAxis, IntegerAxis
from cube.horizon import Horizon
from cube.measurement import PlannedMeasurement, Weight
from cube.query import Partition, QueryBlock, counting
from cube.refusals import SourceUnavailable
from cube.schema import Schema
from tests.support.growing_table import ReadTable

N_DAYS = 2**12
CHANGED_EACH = 5  # days after which one closed day is changed
DAY = IntegerAxis(name="day", low=0, high=N_DAYS - 1)
KIND = CategoryAxis(name="kind", values=("a", "b"))
SCHEMA = Schema(table="orders", axes=(DAY, KIND), n_records_max=10**6, grows="day")
BY_KIND = QueryBlock(counting(), Partition(("kind",), np.arange(2, dtype=np.int64)))


class ChangingTable:
    """Rows of which one day more is other than before for each change that was accepted.

    Parameters
    ----------
    ledger : Ledger
        Which says how many were.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.n_ahead = 0  # changes that are made and not accepted yet

    def fingerprint(self, key: bytes) -> str:
        return key.hex()

    def read_up_to(self, horizon: int) -> ReadTable:
        n_changes = n_accepted(self._ledger) + self.n_ahead
        days = np.arange(horizon, dtype=np.int64)
        changed = days[: CHANGED_EACH * n_changes : CHANGED_EACH]
        records = [np.stack((days, days % 2), axis=1), np.stack((changed, 1 + 0 * changed), axis=1)]
        return ReadTable(SCHEMA, np.concatenate(records))


def n_accepted(ledger: Ledger) -> int:
    """How many changes the ledger has accepted."""
    return sum(entry.kind == "changes_accepted" for entry in ledger._store.entries_after(0))


def live(path: str, _number: int) -> None:
    """Go on from where the ledger is."""
    with open_ledger(Path(path)) as ledger:
        table = ChangingTable(ledger)
        gate = open_table(ledger, SCHEMA, Fraction(10**6), table, SystemNoise())
        while True:
            _step(gate, table)


def _step(gate: Gate, table: ChangingTable) -> None:
    """A day: the horizon, perhaps a change, and two purchases."""
    growth = gate.history.growth
    if growth is None:
        raise RuntimeError("a table that grows")
    horizon = growth.horizon + 1
    try:
        gate.advance(horizon, "owner")
        if horizon % CHANGED_EACH == 0:
            table.n_ahead = 1
            gate.accept_changes(0, horizon, "owner")
            table.n_ahead = 0
        gate.complete_pending()
        for n_days in (horizon, max(1, horizon - 1)):
            block = Horizon("day", N_DAYS, n_days).whole(BY_KIND)
            plan = [PlannedMeasurement(block, Weight(2**30))]
            gate.measure(plan, Payer("ann"), epsilon_cap=None)
    except (SourceUnavailable, StalePlan, RuntimeError, ValueError):
        table.n_ahead = 0  # the other process was faster
        gate.refresh()
