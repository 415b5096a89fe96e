"""Seven people whose table is replaced, and what is bought of each generation of it."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from accountant.auditor.verify import verify
from accountant.gate.gate import Gate
from accountant.gate.opening import Funds, renew_table
from accountant.ledger.entries import Entry
from accountant.ledger.history.replay import Replay
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from cube.measurement import PlannedMeasurement, Weight
from cube.query import QueryBlock
from cube.schema import Schema
from tests.support.fakes import KnownTable
from tests.support.seven_people import SCHEMA

ANN, ONE = Payer("ann"), Weight.at_least(Fraction(1, 16))
FUNDS = Funds(Fraction(64))
OTHERS = np.array([[4, 0], [4, 1], [2, 0]], dtype=np.int64)
N_CELLS = 12


def buy(gate: Gate, block: QueryBlock, times: int = 1, raised_from: int | None = None) -> None:
    plan = [PlannedMeasurement(block, Weight(times * ONE.units), raised_from)]
    gate.measure(plan, ANN, epsilon_cap=None)


def renew(ledger: Ledger, records: NDArray[np.int64], schema: Schema = SCHEMA) -> bool:
    return renew_table(ledger, schema, FUNDS, KnownTable(schema, records), "owner")


def renewed(gate: Gate, ledger: Ledger, records: NDArray[np.int64] = OTHERS) -> None:
    """A generation has begun, and the server has read its data."""
    assert renew(ledger, records, gate.schema)
    gate.read_from(KnownTable(gate.schema, records))


def spent(gate: Gate) -> Fraction:
    return Fraction(gate.history.units_spent, ONE.units)


def entries(ledger: Ledger) -> list[Entry]:
    return list(ledger.entries())


def check(ledger: Ledger) -> None:
    """The auditor finds the same sum, and a server that starts now the same history."""
    verdict = verify(entries(ledger), has_columns=True)
    assert verdict.problem is None
    for one in verdict.tables:
        assert one.exact
        assert one.spent == one.recomputed
        again, history = (
            Replay().read(entries(ledger)).history(one.table),
            ledger.history(one.table),
        )
        assert again.generations == history.generations
        assert again.units_of_rows == history.units_of_rows
        assert again.cost.table_cost() == history.cost.table_cost()
        assert one.n_generations == history.generations.number
