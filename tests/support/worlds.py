"""A small private table behind a whole engine; planner, gate, ledger and source are real."""

import csv
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import NoiseSource, SystemNoise
from cube.axis import BooleanAxis, CategoryAxis, IntegerAxis
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.measuring.candidates import Strategy
from planner.measuring.weights import GaussianOffer
from proxy.config.sharing import Sharing
from proxy.engine.engine import Engine
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from proxy.tables.private_table import ServedTable

SCHEMA = Schema(
    table="people",
    axes=(
        IntegerAxis(name="age", low=0, high=99),
        CategoryAxis(name="city", values=("Oslo", "Paris", "Rome"), null=True),
        BooleanAxis(name="member"),
        IntegerAxis(name="visits", low=0, high=20),
    ),
    n_records_max=100_000,
)
DEFAULT = AccuracyTarget(half_width=20.0, confidence=0.95)

Row = tuple[int, str, bool, int]


def random_rows(n_rows: int, seed: int = 1) -> list[Row]:
    """Rows of the table; an empty city is NULL."""
    draw = random.Random(seed)  # noqa: S311 - data for tests, not noise
    return [
        (
            min(99, int(draw.gammavariate(6, 7))),
            draw.choice(["Oslo", "Oslo", "Paris", "Rome", ""]),
            draw.random() < 0.3,
            min(20, int(draw.expovariate(0.3))),
        )
        for _ in range(n_rows)
    ]


def write_csv(path: Path, rows: Sequence[Row]) -> Path:
    """Write rows as the CSV that the source reads."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(axis.name for axis in SCHEMA.axes)
        writer.writerows(rows)
    return path


@contextmanager
def people_engine(  # noqa: PLR0913 - what an owner may say of a table
    folder: Path,
    rows: Sequence[Row],
    *,
    budget: Fraction = Fraction(1),
    default: AccuracyTarget = DEFAULT,
    strategy: Strategy = Strategy.AUTO,
    sharing: Sharing = Sharing.SHARED,
    noise: NoiseSource | None = None,
    gaussian: GaussianOffer | None = None,
) -> Iterator[Engine]:
    """An engine on the rows, with its ledger in `folder`."""
    with people_served(
        folder,
        rows,
        budget=budget,
        default=default,
        strategy=strategy,
        sharing=sharing,
        noise=noise,
        gaussian=gaussian,
    ) as table:
        yield Engine({SCHEMA.table: table})


@contextmanager
def people_served(  # noqa: PLR0913 - what an owner may say of a table
    folder: Path,
    rows: Sequence[Row],
    *,
    budget: Fraction = Fraction(1),
    default: AccuracyTarget = DEFAULT,
    strategy: Strategy = Strategy.AUTO,
    sharing: Sharing = Sharing.SHARED,
    noise: NoiseSource | None = None,
    gaussian: GaussianOffer | None = None,
) -> Iterator[ServedTable]:
    """The table on the rows, with its ledger in `folder`."""
    source = DuckDbSource(SCHEMA, SourceLocation(path=write_csv(folder / "people.csv", rows)))
    with open_ledger(folder / "people.ledger") as ledger:
        gate = open_table(ledger, SCHEMA, budget, source, noise or SystemNoise())
        yield ServedTable(SCHEMA, default, gate, strategy, gaussian=gaussian, sharing=sharing)
