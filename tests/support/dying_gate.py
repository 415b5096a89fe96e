"""A process that buys two measurements through the gate and dies at a named step of the second.

Run as ``python -m tests.support.dying_gate LEDGER STEP SECOND``; it prints what it releases. The
second is ``fresh``, or a ``raise`` of the first. With the step ``never`` it goes on buying until it
is killed: new measurements, or ever further raises of one.
"""

import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np

from accountant.gate.gate import Gate
from accountant.gate.open_table import open_table
from accountant.ledger.entries import Charge, Measured
from accountant.ledger.limits import Payer
from accountant.noise.laplace import SystemNoise
from cube.axis import IntegerAxis
from cube.block import Partition, QueryBlock
from cube.measurement import PlannedMeasurement, Weight
from cube.query import counting
from cube.schema import Schema
from tests.support.fakes import DyingLedger, DyingNoise, DyingSource, KnownTable, die

STEPS = (
    "before charge",
    "after charge",
    "before read",
    "after read",
    "after noise",
    "before measurement",
    "after measurement",
)
SCHEMA = Schema(table="people", axes=(IntegerAxis(name="age", low=0, high=3),), n_records_max=100)
TABLE = KnownTable(SCHEMA, np.array([[0], [1], [1], [3]], dtype=np.int64))
EVERYONE = PlannedMeasurement(QueryBlock(counting()), Weight.at_least(Fraction(1, 4)))
BY_AGE = PlannedMeasurement(
    QueryBlock(counting(), Partition(("age",), np.arange(4, dtype=np.int64))), EVERYONE.weight
)
RAISED = PlannedMeasurement(EVERYONE.block, Weight.at_least(Fraction(1, 2)), raised_from=0)
SECONDS = {"fresh": BY_AGE, "raise": RAISED}


def main(path: str, fatal: str, second: str) -> None:
    """Buy, print, buy, die."""
    armed = False

    def step(name: str) -> Callable[[], None]:
        def happen() -> None:
            if armed and name == fatal:
                die()

        return happen

    entry, kind = (Charge, "charge") if fatal.endswith("charge") else (Measured, "measurement")
    ledger = DyingLedger(Path(path), entry, step(f"before {kind}"), step(f"after {kind}"))
    source = DyingSource(TABLE, step("before read"), step("after read"))
    noise = DyingNoise(SystemNoise(), step("after noise"))
    gate = open_table(ledger, SCHEMA, Fraction(1000), source, noise)
    for planned in (EVERYONE, SECONDS[second]):
        (bought,) = gate.measure([planned], Payer("ann"), epsilon_cap=None)
        print(*bought.lattice_values, flush=True)  # noqa: T201 - the test reads what was released
        armed = True
    while fatal == "never":
        (bought,) = gate.measure([_next(gate, second)], Payer("ann"), epsilon_cap=None)
        print(*bought.lattice_values, flush=True)  # noqa: T201 - the test reads what was released


def _next(gate: Gate, second: str) -> PlannedMeasurement:
    if second == "fresh":
        return EVERYONE
    place = len(gate.measurements()) - 1
    weight = Weight(gate.measurements()[place].weight.units + EVERYONE.weight.units)
    return PlannedMeasurement(EVERYONE.block, weight, raised_from=place)


if __name__ == "__main__":
    main(*sys.argv[1:])
