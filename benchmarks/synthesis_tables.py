"""The tables on which synthesis is measured: their files, their public columns, their rows.

Files of codes: every column holds whole numbers from 0, so that a level's position is its code.
Tables of installed packages come beside them (synthesis_packaged.py). Where there is neither, the
labelled Adult table of the examples is used.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.axis import Axis, CategoryAxis, IntegerAxis
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.measuring.weights import GaussianOffer
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from proxy.synthetic_tables.models import arrow_type, levels_of
from proxy.tables.private_table import ServedTable

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT.parent / "shared" / "data"
EXAMPLE = ROOT / "examples" / "adult"
N_RECORDS_MAX = 100_000
N_RECORDS_MAX_OF_OTHERS = 1_000_000
BUDGET = Fraction(100)  # no run is cut short; what it spends is looked at
DEFAULT = AccuracyTarget(half_width=1000.0, confidence=0.95)
NAME = "people"


@dataclass(frozen=True, slots=True)
class BenchTable:
    """A table by its file.

    Parameters
    ----------
    name : str
        What figures call it.
    path : Path
        A CSV file of codes, or of labels if `schema` is given.
    schema : Schema
    """

    name: str
    path: Path
    schema: Schema

    @property
    def sizes(self) -> tuple[int, ...]:
        """The levels of each column."""
        return tuple(axis.size for axis in self.schema.axes)

    def place(self, column: str) -> int:
        """Where a column stands among the others."""
        return [axis.name for axis in self.schema.axes].index(column)

    def rows(self) -> NDArray[np.int64]:
        """The private rows, as positions of levels: in plain sight, to compare with."""
        types = {axis.name: arrow_type(axis) for axis in self.schema.axes}
        options = pa_csv.ConvertOptions(column_types=types, strings_can_be_null=True)
        return positions(self.schema, pa_csv.read_csv(self.path, convert_options=options))


def positions(schema: Schema, table: pa.Table) -> NDArray[np.int64]:
    """Rows of values as (n_rows, n_columns) positions of levels."""
    return np.column_stack(list(levels_of(schema.axes, table).values()))


def tables() -> dict[str, BenchTable]:
    """The tables of files that are at hand, by their names; without files the example's."""
    # By the meaning of the columns: which are numbers in bins, whose neighbours are alike.
    ordered = {
        "adult14": {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss",
                    "hours-per-week"},
        "adult15": {"0", "2", "4", "10", "11", "12"},
    }  # fmt: skip
    files = {
        "adult14": FOLDER / "adult" / "adult.csv",
        "adult15": FOLDER / "privbayes" / "adult.csv",
        **{name: FOLDER / "privbayes" / f"{name}.csv" for name in ("nltcs", "br2000", "acs")},
    }
    found = {
        name: BenchTable(name, path, _coded(path, ordered.get(name, set())))
        for name, path in files.items()
        if path.exists()
    }
    return found or {"adult13": example()}


def more_tables() -> dict[str, BenchTable]:
    """Tables of installed packages, and made-up ones, by their names."""
    # pandas, with which they are made, would count as memory of every other table's run
    from benchmarks.synthesis_packaged import packaged, widened  # noqa: PLC0415

    others = packaged()
    adult = tables().get("adult14")
    if adult is not None:
        others["adult100"] = widened(adult.path, adult.schema.axes)
    found = {}
    for name, (path, axes) in others.items():
        schema = Schema(table=NAME, axes=axes, n_records_max=N_RECORDS_MAX_OF_OTHERS)
        found[name] = BenchTable(name, path, schema)
    return found


def table_named(name: str) -> BenchTable:
    """One of all these tables."""
    found = tables().get(name)
    if found is not None:
        return found
    return example() if name == "adult13" else more_tables()[name]


def _coded(path: Path, ordered: set[str]) -> Schema:
    """The schema of a file of codes, from the file of domain sizes beside it."""
    domain = json.loads(path.with_name(f"{path.stem}-domain.json").read_text())
    axes: list[Axis] = []
    for name, said in domain.items():
        size = said if isinstance(said, int) else said["domain"]
        if name in ordered:
            axes.append(IntegerAxis(name=name, low=0, high=size - 1))
        else:
            axes.append(CategoryAxis(name=name, values=tuple(map(str, range(size)))))
    return Schema(table=NAME, axes=tuple(axes), n_records_max=N_RECORDS_MAX)


def example() -> BenchTable:
    """The labelled Adult table of the examples."""
    from proxy.config.settings import load  # noqa: PLC0415 - its memory would be counted with every other table

    [table] = load(EXAMPLE / "tacit.toml").tables
    return BenchTable("adult13", EXAMPLE / "adult.csv", replace(table.schema, table=NAME))


@contextmanager
def served(table: BenchTable, delta: Fraction | None = None) -> Iterator[ServedTable]:
    """The table behind a gate, with a durable ledger of its own and the system's noise."""
    with TemporaryDirectory(prefix="tacit-bench-") as folder:
        source = DuckDbSource(table.schema, SourceLocation(path=table.path))
        with open_ledger(Path(folder) / "bench.ledger") as ledger:
            gate = open_table(ledger, table.schema, BUDGET, source, SystemNoise())
            offer = None if delta is None else GaussianOffer(delta, Fraction(1))
            yield ServedTable(table.schema, DEFAULT, gate, gaussian=offer)
