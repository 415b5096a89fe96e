"""The unit of privacy: a row each in the whole source, or the source is refused."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from tests.support.shop import AGE, CANARY, refusal, schema_of


def _as_csv(folder: Path, text: str) -> SourceLocation:
    (folder / "a.csv").write_text(text)
    return SourceLocation(path=folder / "a.csv")


def _as_parquet(folder: Path, text: str) -> SourceLocation:
    location = _as_csv(folder, text)
    path = folder / "a.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (FROM '{location.path}') TO '{path}'")
    return SourceLocation(path=path)


@pytest.mark.parametrize("write", [_as_csv, _as_parquet])
@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (f"1,{CANARY}\n2,{CANARY}\n", "the source holds a value twice"),
        (f"1,{CANARY}\n2,\n", "the source holds NULL"),
        (f"1,{CANARY}\n500,{CANARY}\n", "the source holds a value twice"),
        (f"1,{CANARY}\n2,9\n3,11\n", None),
        ("", None),
    ],
    ids=["twice", "missing", "twice, one left out", "unique", "no rows"],
)
def test_each_unit_has_one_row_in_the_whole_source(
    tmp_path: Path,
    write: Callable[[Path, str], SourceLocation],
    lines: str,
    expected: str | None,
) -> None:
    location = write(tmp_path, f"age,Person\n{lines}" if lines else "age,Person\n1,2\n")
    schema = schema_of(AGE, unit="person")
    if expected is None:
        DuckDbSource(schema, location)
        return
    said = refusal(schema, location)
    assert f"tables.people.unit: {expected}" in said
    assert "a problem" in said


def test_an_absent_unit_is_listed_with_absent_columns(tmp_path: Path) -> None:
    said = refusal(schema_of(AGE, unit="person"), _as_csv(tmp_path, "a\n1\n"))
    assert "tables.people.columns.age: the source has no such column" in said
    assert "tables.people.unit: the source has no column person" in said


def test_a_unit_leaves_the_ledger_of_a_table_as_it_is(tmp_path: Path) -> None:
    """That nobody has two rows changes no coefficient: it may be checked from some day on."""
    location = _as_csv(tmp_path, "age,person\n1,2\n")
    with open_ledger(tmp_path / "a.ledger") as ledger:
        for unit in (None, "person"):
            schema = schema_of(AGE, unit=unit)
            open_table(ledger, schema, Fraction(1), DuckDbSource(schema, location), SystemNoise())
