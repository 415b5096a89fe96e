"""Do the intervals hold the truth whatever was measured: rows, refined cells, hierarchies, cuboids?

Many independent runs of the whole path on a known table, each with a list of questions that does
not depend on noise. Answers within a run share noise, so the odds are stated for runs.
"""

import csv
import random
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.gate.opening import open_table
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import NoiseSource, SystemNoise
from cube.axis import BooleanAxis, IntegerAxis
from cube.measurement import PlannedMeasurement
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.batch.plan import plan_batch
from planner.measuring.candidates import Strategy
from planner.planner import Planner
from planner.workload import RequestedTarget, Wanted
from proxy.api.requests import QueryRequest
from proxy.engine.engine import Engine
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from proxy.tables.private_table import ServedTable
from tests.end_to_end.test_coverage import ScaledNoise

CONFIDENCE = 0.95
N_RUNS = 500
# Were the answers of a run one and the same, the standard error of their mean over runs would be
# sqrt(.05 * .95 / 500) = 0.0097; measured, it is about 0.005: 0.02 is four of those. Answers from
# history alone are as few as one a run, so that they get twice as much: four of 0.0097.
COVERAGE_ERROR_MAX = {"overall": 0.02, "measured": 0.02, "history": 0.04}
N_RUNS_WRONG = 300

SCHEMA = Schema(
    table="visits",
    axes=(IntegerAxis(name="day", low=0, high=47), BooleanAxis(name="new")),
    n_records_max=100_000,
)
Row = tuple[int, bool]

# The second raises what the first bought; the last but one is stricter than anything before.
QUESTIONS = (
    ("COUNT(*) FILTER (WHERE day < 20)", 60.0, lambda row: row[0] < 20),
    ("COUNT(*) FILTER (WHERE day < 20)", 30.0, lambda row: row[0] < 20),
    ("COUNT(*) FILTER (WHERE day BETWEEN 9 AND 42)", 45.0, lambda row: 9 <= row[0] <= 42),
    ("COUNT(*) FILTER (WHERE new AND day > 30)", 40.0, lambda row: row[1] and row[0] > 30),
    ("COUNT(*) FILTER (WHERE day BETWEEN 9 AND 35)", 20.0, lambda row: 9 <= row[0] <= 35),
    ("COUNT(*) FILTER (WHERE day >= 20)", 200.0, lambda row: row[0] >= 20),
)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    draw = random.Random(3)  # noqa: S311 - data for tests, not noise
    return [(min(47, int(draw.expovariate(0.05))), draw.random() < 0.3) for _ in range(3000)]


def coverage(  # noqa: PLR0913, PLR0917 - one experiment's parameters
    folder: Path,
    rows: list[Row],
    strategy: Strategy,
    n_runs: int,
    noise: NoiseSource,
    batch: Sequence[PlannedMeasurement] = (),
) -> dict[str, float]:
    """The share of intervals that hold the truth, overall and for answers from history.

    What is in `batch` is bought before anything is asked.
    """
    path = folder / "visits.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(axis.name for axis in SCHEMA.axes)
        writer.writerows(rows)
    source = DuckDbSource(SCHEMA, SourceLocation(path=path))
    default = AccuracyTarget(half_width=50.0, confidence=CONFIDENCE)
    truths = [sum(map(keep, rows)) for _, _, keep in QUESTIONS]
    held: dict[str, list[bool]] = {"history": [], "measured": []}
    for run in range(n_runs):
        with open_ledger(folder / f"{run}.ledger") as ledger:
            gate = open_table(ledger, SCHEMA, Fraction(100), source, noise)
            if batch:
                gate.measure(batch, Payer("batch"), epsilon_cap=None)
            engine = Engine({"visits": ServedTable(SCHEMA, default, gate, strategy)})
            for (expression, half_width, _), truth in zip(QUESTIONS, truths, strict=True):
                request = QueryRequest(
                    sql=f"SELECT {expression} AS n FROM visits",  # noqa: S608 - a fixed list
                    target=RequestedTarget(half_width=half_width),
                )
                receipt = engine.answer(request).receipt
                assert receipt is not None
                column = receipt.columns[0]
                held[column.source].append(column.low[0] <= truth <= column.high[0])
    return {name: float(np.mean(hits)) for name, hits in held.items() if hits} | {
        "overall": float(np.mean([hit for hits in held.values() for hit in hits]))
    }


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [one for one in Strategy if one is not Strategy.PAPER])
def test_intervals_hold_the_truth_whatever_was_measured(
    tmp_path: Path, rows: list[Row], strategy: Strategy
) -> None:
    found = coverage(tmp_path, rows, strategy, N_RUNS, SystemNoise())
    print(f"\n{strategy}: {found}")  # noqa: T201 - the figure
    for source, share in found.items():
        assert abs(share - CONFIDENCE) <= COVERAGE_ERROR_MAX[source]


@pytest.mark.slow
def test_intervals_hold_the_truth_for_what_was_planned_together(
    tmp_path: Path, rows: list[Row]
) -> None:
    planner = Planner(
        {"visits": SCHEMA}, {"visits": AccuracyTarget(half_width=50.0, confidence=CONFIDENCE)}
    )
    queries = []
    for expression, half_width, _ in QUESTIONS:
        sql = f"SELECT {expression} AS n FROM visits"  # noqa: S608 - a fixed list
        (part,) = planner.plan(sql, RequestedTarget(half_width=half_width)).parts
        (aggregate,) = part.aggregates
        queries.append(Wanted(aggregate.blocks[0], aggregate.target))
    batch = plan_batch(queries, SCHEMA).measurements
    found = coverage(tmp_path, rows, Strategy.QUERY, N_RUNS, SystemNoise(), batch)
    print(f"\nbatch: {found}")  # noqa: T201 - the figure
    assert found.keys() == {"history", "overall"}, "a batch answers all that it was planned for"
    assert abs(found["overall"] - CONFIDENCE) <= COVERAGE_ERROR_MAX["overall"]


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1.3, 1 / 1.3])
def test_a_wrong_scale_is_caught_in_cells_too(
    tmp_path: Path, rows: list[Row], factor: float
) -> None:
    found = coverage(tmp_path, rows, Strategy.CELLS, N_RUNS_WRONG, ScaledNoise(factor))
    assert abs(found["overall"] - CONFIDENCE) > COVERAGE_ERROR_MAX["overall"]
