"""The fingerprint of the rows that are read: what changes it, what does not, and the attack."""

import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.gate.opening import open_table
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.axis import CategoryAxis, IntegerAxis
from cube.measurement import PlannedMeasurement, Weight
from cube.query import QueryBlock, counting
from cube.refusals import ConfigurationInvalid, DataChanged, SourceUnavailable
from cube.schema import Schema
from proxy.sources import cells as cells_in_order
from proxy.sources import files
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import Location, PrivateView, SourceLocation
from tests.support.examples import examples
from tests.support.loaded import database_of

AGE = IntegerAxis(name="age", low=0, high=9, other=-1, null=True)
SEX = CategoryAxis(name="sex", values=("f", "m"))
KEY = b"key"
EVERYONE = QueryBlock(counting())
ANN = Payer("ann")
Rows = list[tuple[int, str]]


def schema_of(*axes: IntegerAxis | CategoryAxis) -> Schema:
    return Schema(table="people", axes=axes, n_records_max=100_000)


def fingerprint(location: Location, schema: Schema | None = None, key: bytes = KEY) -> str:
    return DuckDbSource(schema or schema_of(AGE, SEX), location).rows_fingerprint(key)


def stored(path: Path, rows: Rows) -> SourceLocation:
    columns = {"age": [age for age, _ in rows], "sex": [sex for _, sex in rows]}
    types = pa.schema([("age", pa.int64()), ("sex", pa.string())])
    pq.write_table(pa.table(columns, schema=types), path)
    return SourceLocation(path=path)


def buy(folder: Path, location: Location, weight: Fraction, raised_from: int | None = None) -> None:
    """Start, buy a count of everyone, and stop."""
    schema = schema_of(AGE, SEX)
    with open_ledger(folder / "a.ledger") as ledger:
        source = DuckDbSource(schema, location)
        gate = open_table(ledger, schema, Fraction(1), source, SystemNoise())
        plan = PlannedMeasurement(EVERYONE, Weight.at_least(weight), raised_from)
        gate.measure([plan], ANN, epsilon_cap=None)


ROWS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["f", "m"])), max_size=6)


@settings(max_examples=examples(40), deadline=None)
@given(one=ROWS, other=ROWS)
def test_two_files_have_one_fingerprint_if_they_have_the_same_rows_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, one: Rows, other: Rows
) -> None:
    path = tmp_path_factory.mktemp("rows") / "people.parquet"
    found = fingerprint(stored(path, one))
    assert (fingerprint(stored(path, other)) == found) == (sorted(one) == sorted(other))
    assert fingerprint(stored(path, one[::-1])) == found


def test_the_order_of_declared_columns_does_not_matter_and_their_names_do(tmp_path: Path) -> None:
    location = stored(tmp_path / "people.parquet", [(1, "f"), (2, "m")])
    known = fingerprint(location)
    assert fingerprint(location, schema_of(SEX, AGE)) == known
    assert fingerprint(location, schema_of(AGE)) != known
    assert fingerprint(location, key=b"other") != known
    path = tmp_path / "twice.csv"
    path.write_text("age,years\n1,1\n")
    years = IntegerAxis(name="years", low=0, high=9, other=-1, null=True)
    assert fingerprint(SourceLocation(path=path), schema_of(AGE)) != fingerprint(
        SourceLocation(path=path), schema_of(years)
    )


def test_any_format_with_the_same_rows_has_the_same_fingerprint(tmp_path: Path) -> None:
    known = fingerprint(stored(tmp_path / "people.parquet", [(1, "f"), (2, "m"), (1, "f")]))
    (tmp_path / "people.csv").write_text("sex,more,age\nf,x,1\nf,,1\nm,y,2\n")
    with duckdb.connect(tmp_path / "people.duckdb") as connection:
        connection.execute(f"CREATE TABLE t AS FROM '{tmp_path / 'people.parquet'}'")
    csv = SourceLocation(path=tmp_path / "people.csv")
    table = SourceLocation(path=tmp_path / "people.duckdb", source_table="t")
    view = PrivateView(sql="FROM t", sources=(("t", table),))
    assert [fingerprint(location) for location in (csv, table, view)] == [known] * 3


@pytest.mark.parametrize("n_at_once", [1, 7, 300, 4000])
def test_rows_are_hashed_alike_in_one_piece_and_in_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_at_once: int
) -> None:
    rng = np.random.default_rng(5)
    axes = tuple(IntegerAxis(name=name, low=0, high=9) for name in "abc")
    columns = {axis.name: rng.integers(0, 1 + 3 * place, 5000) for place, axis in enumerate(axes)}
    pq.write_table(pa.table(columns), tmp_path / "people.parquet")
    source = DuckDbSource(schema_of(*axes), SourceLocation(path=tmp_path / "people.parquet"))
    whole = b"".join(source._cells_in_order())
    monkeypatch.setattr(cells_in_order, "N_RECORDS_AT_ONCE", n_at_once)
    pieces = list(source._cells_in_order())
    assert len(pieces) > 1
    assert b"".join(pieces) == whole
    cells, counts = np.unique(np.column_stack(list(columns.values())), axis=0, return_counts=True)
    assert whole == np.column_stack([cells, counts]).astype("<i8").tobytes()
    monkeypatch.setattr(cells_in_order, "N_CELLS_A_BATCH", 3)
    assert b"".join(source._cells_in_order()) == whole


def test_rows_that_cannot_be_read_are_not_quoted(tmp_path: Path) -> None:
    source = DuckDbSource(schema_of(AGE, SEX), stored(tmp_path / "a.parquet", [(1, "f")]))
    database_of(source).execute("DROP TABLE cells")
    with pytest.raises(SourceUnavailable) as caught:
        source.rows_fingerprint(KEY)
    assert caught.value.__suppress_context__


def test_a_release_that_reads_a_file_otherwise_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes are the same, and so is the fingerprint of them; what NULL is has changed."""
    path = tmp_path / "people.csv"
    path.write_text("age,sex\n1,f\n,f\n,m\n")
    location = SourceLocation(path=path)
    buy(tmp_path, location, Fraction(1, 4))
    read = files.opened

    def otherwise(*arguments: Any) -> files.Relation:
        relation = read(*arguments)
        return files.Relation(f"(FROM {relation.sql} LIMIT 2)", relation.columns)

    with monkeypatch.context() as patch:
        patch.setattr(files, "opened", otherwise)
        with pytest.raises(DataChanged, match="different rows were read"):
            buy(tmp_path, location, Fraction(1, 2), raised_from=0)
    buy(tmp_path, location, Fraction(1, 2), raised_from=0)


def test_the_rows_of_a_file_behind_a_view_cannot_change_between_a_measurement_and_its_raise(
    tmp_path: Path,
) -> None:
    """The attack, end to end: a raise was sold across the change, and told the difference."""
    rows, fewer = [(1, "f")] * 20_000, [(1, "f")] * 1_158
    beside = stored(tmp_path / "x.parquet", rows)
    with duckdb.connect(tmp_path / "people.duckdb") as connection:
        connection.execute(f"CREATE VIEW people AS FROM '{beside.path}'")
    location = SourceLocation(path=tmp_path / "people.duckdb", source_table="people")
    with pytest.raises(ConfigurationInvalid, match="is a view"):
        buy(tmp_path, location, Fraction(1, 4))
    through = PrivateView(sql="FROM people", sources=(("people", beside),))
    buy(tmp_path, through, Fraction(1, 4))
    shutil.copy(beside.path, tmp_path / "kept.parquet")
    stored(beside.path, fewer)
    with pytest.raises(DataChanged):
        buy(tmp_path, through, Fraction(1, 2), raised_from=0)
    shutil.copy(tmp_path / "kept.parquet", beside.path)
    buy(tmp_path, through, Fraction(1, 2), raised_from=0)


def test_a_ledger_of_before_on_a_view_of_a_database_is_refused_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release of before served it; what it may have changed since, nobody knows."""
    beside = stored(tmp_path / "x.parquet", [(1, "f")])
    with duckdb.connect(tmp_path / "people.duckdb") as connection:
        connection.execute(f"CREATE VIEW people AS FROM '{beside.path}'")
    location = SourceLocation(path=tmp_path / "people.duckdb", source_table="people")
    with monkeypatch.context() as patch:
        patch.setattr(files, "opened", lambda *_: files.Relation("(SELECT 1 AS age, 'f' AS sex)"))
        buy(tmp_path, location, Fraction(1, 4))
    with pytest.raises(ConfigurationInvalid, match="is a view") as caught:
        buy(tmp_path, location, Fraction(1, 2), raised_from=0)
    assert "CREATE TABLE" in caught.value.explain()
