"""What both tables of the same people tell together, measured by an attacker.

They know all but one unit, in many worlds at once, as in test_attack.py: the unit has three rows of
orders and one of orders.units, and both tables are asked how many there are.
"""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accountant.gate.opening import Funds, open_table
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.axis import IntegerAxis
from cube.measurement import PlannedMeasurement, Weight
from cube.query import QueryBlock, counting
from cube.schema import Schema
from proxy.sources.bounding import RowsRead
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation, UnitRows
from tests.end_to_end.test_attack import BY_WORLD, N_WORLDS, epsilon_shown

ROWS, UNITS_WEIGHT = 3, Weight.at_least(Fraction(1, 2))
ROWS_WEIGHT = Weight(2**40 // 2 // ROWS)
WORLD = IntegerAxis(name="world", low=0, high=N_WORLDS - 1)
EVERYONE = QueryBlock(counting(), BY_WORLD)
N_RUNS = 20_000


def ratios(folder: Path, n_victims: int) -> tuple[np.ndarray[Any, Any], list[float]]:
    """For each run, how much likelier both answers are with the unit; what each table charged."""
    folder.mkdir()
    rows = [f"{world}-{who},{world}" for world in range(N_WORLDS) for who in ("a", "a", "b")]
    rows += [f"{world}-v,{world}" for world in range(N_WORLDS) for _ in range(ROWS * n_victims)]
    (folder / "orders.csv").write_text("\n".join(["person,world", *rows]) + "\n")
    file = SourceLocation(path=folder / "orders.csv")
    cap = 100 * N_WORLDS
    several = Schema(
        table="orders", axes=(WORLD,), n_records_max=cap, unit="person", rows_per_unit_max=ROWS
    )
    one_each = Schema(table="orders.units", axes=(WORLD,), n_records_max=cap, unit="person")
    funds = Funds(Fraction(10**8), shared="orders")
    n_charges = N_RUNS // N_WORLDS
    total, charged = np.zeros((n_charges, N_WORLDS)), []
    with open_ledger(folder / "a.ledger") as ledger:
        for schema, location, weight, n_others, n_own in (
            (several, file, ROWS_WEIGHT, 3, ROWS),
            (one_each, UnitRows(of=file), UNITS_WEIGHT, 2, 1),
        ):
            source = DuckDbSource(schema, location, RowsRead(ledger.key))
            gate = open_table(ledger, schema, funds, source, SystemNoise())
            before = gate.budget().spent
            for run in range(n_charges):
                plan = [PlannedMeasurement(EVERYONE, weight)]
                (found,) = gate.measure(plan, Payer("eve"), epsilon_cap=None)
                error = np.array(found.values, dtype=float).reshape(N_WORLDS) - n_others
                total[run] += float(weight.exact) * (np.abs(error) - np.abs(error - n_own))
            charged.append(float(gate.budget().spent - before) / n_charges)
    return total.ravel(), charged


def test_what_an_attacker_learns_from_both_tables_is_what_both_were_charged(
    tmp_path: Path,
) -> None:
    """Wrong about honest tables with 1e-4 at most. Either charge alone would be convicted."""
    without, _ = ratios(tmp_path / "without", 0)
    with_it, charged = ratios(tmp_path / "with", 1)
    assert charged == pytest.approx([0.5, 0.5])
    shown = epsilon_shown(with_it, without)
    assert shown <= sum(charged)
    assert shown > 1.2 * max(charged)
