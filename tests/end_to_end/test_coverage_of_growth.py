"""Intervals on a table that grows: answers that join old and new measurements, and after changes.

Many independent runs of the whole path: a total by kind is asked again as days are added, read
along stretches of time; then closed rows change, and are accepted. Answers within a run share
noise, so the odds are stated for runs, not answers.
"""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.axis import CategoryAxis, IntegerAxis
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.measuring.candidates import Strategy
from proxy.api.requests import QueryRequest
from proxy.engine.engine import Engine
from proxy.tables.private_table import ServedTable
from tests.end_to_end.test_coverage import SCALE_ERROR_CAUGHT, ScaledNoise
from tests.support.growing_table import GrowingTable

N_RUNS, N_RUNS_WRONG = 1000, 200
CONFIDENCE = 0.95
# Were the answers of a run one and the same, the standard error of their mean would be
# sqrt(.05 * .95 / 1000) = 0.0069; the three kinds of a run have noises of their own, so that it is
# at most 0.0040, and of answers that join several measurements less. 0.01 is two and a half of
# those for all answers together, and 0.02 is five for those of one sort.
COVERAGE_ERROR_MAX = 0.01
COVERAGE_ERROR_OF_A_SORT_MAX = 0.02
HALF_WIDTH = 30.0
N_DAYS, FIRST, CHANGED = 40, 16, 8
DAYS = IntegerAxis(name="day", low=0, high=N_DAYS - 1)
KIND = CategoryAxis(name="kind", values=("a", "b", "c"))
SCHEMA = Schema(table="orders", axes=(DAYS, KIND), n_records_max=10_000, grows="day")
BY_KIND = "SELECT kind, COUNT(*) AS n FROM orders{} GROUP BY kind"

Records = NDArray[np.int64]


def records() -> Records:
    """Some thirty rows a day, in known numbers."""
    rng = np.random.default_rng(5)
    return np.stack((rng.integers(0, N_DAYS, 1500), rng.choice(3, 1500, p=[0.5, 0.3, 0.2])), axis=1)


class Asked:
    """The answers of one run: whether each interval holds the truth."""

    def __init__(self, engine: Engine, table: GrowingTable) -> None:
        self.engine = engine
        self.table = table
        self.held: dict[str, list[bool]] = {}

    def ask(self, low: int, high: int, where: str, what: str) -> None:
        """Ask for the rows of days from `low` to before `high`."""
        request = QueryRequest(sql=BY_KIND.format(where))
        receipt = self.engine.answer(request).receipt
        assert receipt is not None
        (column,) = receipt.columns
        days, kinds = self.table.records.T
        inside = kinds[(days >= low) & (days < high)]
        truths = np.bincount(inside, minlength=3)
        held = [
            least <= truth <= most
            for truth, least, most in zip(truths.tolist(), column.low, column.high, strict=True)
        ]
        self.held.setdefault(what, []).extend(held)


def run(path: Path, right: Records, factor: float | None) -> dict[str, list[bool]]:
    """A table that grows by five stretches, and then changes."""
    table = GrowingTable(right, SCHEMA)
    noise = SystemNoise() if factor is None else ScaledNoise(factor)
    with open_ledger(path) as ledger:
        gate = open_table(ledger, SCHEMA, Fraction(1000), table, noise)
        gate.advance(FIRST, "owner")
        default = AccuracyTarget(half_width=HALF_WIDTH, confidence=CONFIDENCE)
        asked = Asked(Engine({"orders": ServedTable(SCHEMA, default, gate, Strategy.AUTO)}), table)
        asked.ask(0, FIRST, "", "first")
        for horizon in range(FIRST + 3, N_DAYS - 4, 4):
            gate.advance(horizon, "owner")
            asked.ask(0, horizon, "", "joined")
        asked.ask(0, FIRST, f" AS OF {FIRST - 1}", "as of")
        asked.ask(FIRST, horizon, f" WHERE day >= {FIRST}", "a window")
        late = np.stack((np.full(40, CHANGED), np.arange(40) % 3), axis=1)
        table.records = np.append(right, late, axis=0)
        gate.accept_changes(0, FIRST, "owner")
        asked.ask(FIRST, horizon, f" WHERE day >= {FIRST}", "not changed")
        asked.ask(0, horizon, "", "changed")
        gate.advance(N_DAYS, "owner")
        asked.ask(0, N_DAYS, "", "changed, and joined")
    return asked.held


def coverage(folder: Path, n_runs: int, factor: float | None = None) -> dict[str, float]:
    """The share of intervals that hold the truth, of each sort of answer and of all."""
    right, held = records(), dict[str, list[bool]]()
    for number in range(n_runs):
        for what, hits in run(folder / f"{number}.ledger", right, factor).items():
            held.setdefault(what, []).extend(hits)
    shares = {what: float(np.mean(hits)) for what, hits in held.items()}
    return {**shares, "all": float(np.mean([hit for hits in held.values() for hit in hits]))}


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say(tmp_path: Path) -> None:
    found = coverage(tmp_path, N_RUNS)
    print(f"\n{found}")  # noqa: T201 - the figures
    assert abs(found.pop("all") - CONFIDENCE) <= COVERAGE_ERROR_MAX
    for what, share in found.items():
        assert abs(share - CONFIDENCE) <= COVERAGE_ERROR_OF_A_SORT_MAX, what


@pytest.mark.slow
@pytest.mark.parametrize("factor", [SCALE_ERROR_CAUGHT, 1 / SCALE_ERROR_CAUGHT])
def test_a_wrong_scale_is_caught(tmp_path: Path, factor: float) -> None:
    found = coverage(tmp_path, N_RUNS_WRONG, factor)
    assert abs(found["all"] - CONFIDENCE) > COVERAGE_ERROR_MAX
