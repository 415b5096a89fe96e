"""Do intervals that stopped a search hold the truth as often as they say?

Through the whole path, with system noise: each question is of rows that no other is of, and so has
noise of its own. The doubt is large, and the first round may be the last, so that a search which is
not corrected shows in few runs; `tests/proxy/engine/test_optional_stopping.py` has the usual
confidences.
"""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.axis import IntegerAxis
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner import workload
from planner import workload as searching
from planner.lowering import parts
from planner.measuring.candidates import Strategy
from proxy.api.requests import QueryRequest
from proxy.engine.engine import Engine
from proxy.tables.private_table import ServedTable
from tests.support.fakes import KnownTable

CONFIDENCE = 0.8
N_GROUPS = 15  # as many as the table has room for
N_ENGINES = 100
N_ROWS = 1000  # of each group
# Of 1500 questions 300 may miss, give or take 15.5: more than 4.5 of those, once in 300 000 runs.
COVERAGE_ERROR_MAX = 4.5 * 15.5 / (N_GROUPS * N_ENGINES)

GROUP = IntegerAxis(name="g", low=0, high=N_GROUPS - 1)
AGE = IntegerAxis(name="age", low=0, high=9)
# The first width of a count is relative times an eighth of this, so that a group has half of what
# would let its search stop there.
SCHEMA = Schema(table="people", axes=(GROUP, AGE), n_records_max=16 * N_ROWS)

COUNT = ("COUNT(*)", "relative => 0.9, at_least => 1", float(N_ROWS))
MEAN = ("AVG(age)", "relative => 0.9", 4.5)


def coverage(folder: Path, what: str, target: str, truth: float) -> float:
    """The share of questions whose interval holds the truth."""
    groups = np.repeat(np.arange(N_GROUPS), N_ROWS)
    ages = np.tile(np.arange(N_ROWS) % AGE.size, N_GROUPS)
    source = KnownTable(SCHEMA, np.column_stack([groups, ages]).astype(np.int64))
    default = AccuracyTarget(half_width=20.0, confidence=CONFIDENCE)
    held = []
    for run in range(N_ENGINES):
        with open_ledger(folder / f"{run}.ledger") as ledger:
            gate = open_table(ledger, SCHEMA, Fraction(1000), source, SystemNoise())
            engine = Engine({"people": ServedTable(SCHEMA, default, gate, Strategy.QUERY)})
            for group in range(N_GROUPS):
                sql = (
                    f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({target}) {what} AS n "  # noqa: S608 - a fixed list
                    f"FROM people WHERE g = {group}"
                )
                receipt = engine.answer(QueryRequest(sql=sql)).receipt
                assert receipt is not None
                (column,) = receipt.columns
                held.append(column.low[0] <= truth <= column.high[0])
    return float(np.mean(held))


@pytest.mark.slow
@pytest.mark.parametrize(("what", "target", "truth"), [COUNT, MEAN])
def test_an_interval_that_stopped_a_search_holds_the_truth(
    tmp_path: Path, what: str, target: str, truth: float
) -> None:
    assert coverage(tmp_path, what, target, truth) >= CONFIDENCE - COVERAGE_ERROR_MAX


@pytest.mark.slow
def test_the_check_has_teeth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all of the doubt in each round, intervals hold the truth less often than they say."""
    for module in (searching, parts, workload):
        monkeypatch.setattr(module, "surer", lambda confidence: confidence)
    assert coverage(tmp_path, *COUNT) < CONFIDENCE - COVERAGE_ERROR_MAX
