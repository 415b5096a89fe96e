"""Do the intervals hold the truth as often as they say, history answers included?

Many independent runs of the whole path (planner, history, gate, system noise) on a known table;
each run asks a fixed, noise-independent list of questions. Answers within a run share noise, so
the odds are stated for runs, not answers.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import GaussianNoise, LatticeNoise, SystemNoise
from cube.target import AccuracyTarget
from planner.measuring.candidates import Strategy
from proxy.api.requests import QueryRequest
from proxy.engine.engine import Engine
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from proxy.tables.private_table import ServedTable
from tests.support.worlds import SCHEMA, Row, random_rows, write_csv

N_RUNS = 2000
CONFIDENCE = 0.95
# The mean over runs of a run's share of misses: were its 12 answers one and the same, its standard
# error would be sqrt(.05 * .95 / 2000) = 0.0049; measured, it is about 0.0025. 0.01 is 4 of those.
COVERAGE_ERROR_MAX = 0.01
N_RUNS_WRONG = 500
SCALE_ERROR_CAUGHT = 1.3

HALF_WIDTH = 40.0  # of the first questions, which are bought
N_BOUGHT = 5
HALF_WIDTH_DERIVED = 150.0  # of the others, which their answers are good enough for

Keep = Callable[[Row], int]

# Bought ones first, then answers from history: a union, a difference, a multiple, the same again.
QUESTIONS: tuple[tuple[str, Keep], ...] = (
    ("COUNT(*) FILTER (WHERE age < 30)", lambda row: row[0] < 30),
    ("COUNT(*) FILTER (WHERE age >= 30 AND age < 60)", lambda row: 30 <= row[0] < 60),
    ("COUNT(*) FILTER (WHERE age >= 60)", lambda row: row[0] >= 60),
    ("COUNT(*) FILTER (WHERE member)", lambda row: row[2]),
    ("COUNT(*) FILTER (WHERE member AND city = 'Oslo')", lambda row: row[2] and row[1] == "Oslo"),
    ("COUNT(*)", lambda _: 1),
    ("COUNT(*) FILTER (WHERE age < 60)", lambda row: row[0] < 60),
    ("COUNT(*) FILTER (WHERE NOT member)", lambda row: not row[2]),
    ("2 * COUNT(*) FILTER (WHERE age >= 60) - COUNT(*)", lambda row: 2 * (row[0] >= 60) - 1),
    ("SUM(CASE WHEN age < 30 THEN 3 ELSE 1 END)", lambda row: 3 if row[0] < 30 else 1),
    ("COUNT(*) FILTER (WHERE member)", lambda row: row[2]),
    (
        "COUNT(*) FILTER (WHERE member AND city <> 'Oslo')",
        lambda row: row[2] and row[1] not in {"Oslo", ""},
    ),
)


class ScaledNoise:
    """System noise with a wrong scale: what the test must catch."""

    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._system = SystemNoise()

    def discrete_laplace(self, noise: LatticeNoise, size: int) -> tuple[int, ...]:
        drawn = self._system.discrete_laplace(noise, size)
        return tuple(round(self._factor * value) for value in drawn)

    def refined_laplace(
        self, coarse: LatticeNoise, fine: LatticeNoise, drawn: Sequence[int]
    ) -> tuple[int, ...]:
        unscaled = [round(value / self._factor) for value in drawn]
        refined = self._system.refined_laplace(coarse, fine, unscaled)
        return tuple(round(self._factor * value) for value in refined)

    def discrete_gaussian(self, noise: GaussianNoise, size: int) -> tuple[int, ...]:
        drawn = self._system.discrete_gaussian(noise, size)
        return tuple(round(self._factor * value) for value in drawn)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return random_rows(3000)


def coverage(
    folder: Path, rows: list[Row], n_runs: int, factor: float | None = None
) -> dict[str, tuple[float, int]]:
    """The share of intervals that hold the truth, and their number, by source."""
    source = DuckDbSource(SCHEMA, SourceLocation(path=write_csv(folder / "people.csv", rows)))
    truths = [sum(int(keep(row)) for row in rows) for _, keep in QUESTIONS]
    held: dict[str, list[bool]] = {"history": [], "measured": []}
    default = AccuracyTarget(half_width=HALF_WIDTH, confidence=CONFIDENCE)
    for run in range(n_runs):
        noise = SystemNoise() if factor is None else ScaledNoise(factor)
        with open_ledger(folder / f"{run}.ledger") as ledger:
            gate = open_table(ledger, SCHEMA, Fraction(100), source, noise)
            engine = Engine({"people": ServedTable(SCHEMA, default, gate, Strategy.QUERY)})
            for place, ((expression, _), truth) in enumerate(zip(QUESTIONS, truths, strict=True)):
                half_width = HALF_WIDTH if place < N_BOUGHT else HALF_WIDTH_DERIVED
                sql = (
                    "SELECT WITH DIFFERENTIAL_PRIVACY "  # noqa: S608 - a fixed list
                    f"OPTIONS(half_width => {half_width}) "
                    f"{expression} AS n FROM people"
                )
                receipt = engine.answer(QueryRequest(sql=sql)).receipt
                assert receipt is not None
                column = receipt.columns[0]
                held[column.source].append(column.low[0] <= truth <= column.high[0])
    return {name: (float(np.mean(hits)), len(hits)) for name, hits in held.items()}


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say(tmp_path: Path, rows: list[Row]) -> None:
    found = coverage(tmp_path, rows, N_RUNS)
    n_answers = sum(n for _, n in found.values())
    overall = sum(share * n for share, n in found.values()) / n_answers
    print(f"\n{n_answers} answers, coverage {overall:.4f}, {found}")  # noqa: T201 - the figure
    assert n_answers >= 20_000
    assert found["history"][1] >= 4 * N_RUNS
    for share, _ in [*found.values(), (overall, n_answers)]:
        assert abs(share - CONFIDENCE) <= COVERAGE_ERROR_MAX


@pytest.mark.slow
@pytest.mark.parametrize("factor", [SCALE_ERROR_CAUGHT, 1 / SCALE_ERROR_CAUGHT])
def test_a_wrong_scale_is_caught(tmp_path: Path, rows: list[Row], factor: float) -> None:
    found = coverage(tmp_path, rows, N_RUNS_WRONG, factor)
    n_answers = sum(n for _, n in found.values())
    overall = sum(share * n for share, n in found.values()) / n_answers
    assert abs(overall - CONFIDENCE) > COVERAGE_ERROR_MAX
