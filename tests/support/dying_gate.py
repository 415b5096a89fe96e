"""A process that buys two measurements through the gate and dies at a named step of the second.

Run as ``python -m tests.support.dying_gate LEDGER STEP SECOND``; it prints what it releases. The
second is ``fresh``, or a ``raise`` of the first, with Laplace noise or Gaussian. With the step
``never`` it goes on buying until it is killed: new measurements, or ever further raises of one.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from accountant.cost.zcdp_account import GaussianAccount
from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.ledger.entries import Charge, Measured
from accountant.ledger.limits import Payer
from accountant.noise.lattice_noise import SystemNoise
from cube.axis import IntegerAxis
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Precision, Weight
from cube.query import Partition, QueryBlock, counting
from cube.schema import Schema
from tests.support.fakes import DyingLedger, DyingNoise, DyingSource, KnownTable, die
from tests.support.gaussian import TERMS

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
GAUSSIAN = PlannedMeasurement(EVERYONE.block, Precision.at_least(Fraction(1, 900)), terms=TERMS)
GAUSSIAN_RAISED = replace(GAUSSIAN, weight=Precision(2 * GAUSSIAN.weight.units), raised_from=0)
FIRSTS = {"fresh": EVERYONE, "raise": EVERYONE, "gaussian raise": GAUSSIAN}
SECONDS = {"fresh": BY_AGE, "raise": RAISED, "gaussian raise": GAUSSIAN_RAISED}


def spent(second: str, n_charged: int) -> Fraction:
    """What so many measurements cost: each the same, and Gaussian noise once its constant."""
    if second != "gaussian raise":
        return n_charged * Fraction(1, 4)
    each = math.ceil(TERMS.order * GAUSSIAN.weight.exact * UNITS_PER_EPSILON)
    return Fraction(GaussianAccount(TERMS).units + n_charged * each, UNITS_PER_EPSILON)


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
    for planned in (FIRSTS[second], SECONDS[second]):
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
    first, held = FIRSTS[second], gate.measurements()[place].weight
    return replace(first, weight=type(held)(held.units + first.weight.units), raised_from=place)


if __name__ == "__main__":
    main(*sys.argv[1:])
