"""What the source refuses, what it says, and what it never lets out."""

import datetime as dt
import hashlib
import hmac
import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cube.axis import Axis, BooleanAxis, CategoryAxis, DateAxis, IntegerAxis, NumericAxis
from cube.refusals import ConfigurationInvalid, DataChanged, SourceUnavailable
from cube.schema import Schema
from proxy.sources import closed
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from tests.support.groupings import each
from tests.support.loaded import database_of

CANARY = "8675309"
INTEGER = IntegerAxis(name="a", low=0, high=9)
DATE = DateAxis(name="a", low=dt.date(2020, 1, 1), high=dt.date(2020, 12, 31))
NUMERIC = NumericAxis(name="a", edges=(0.0, 1.0))
BOOLEAN = BooleanAxis(name="a")
CATEGORY = CategoryAxis(name="a", values=("x",))


def schema_of(*axes: Axis, n_records_max: int = 1000) -> Schema:
    return Schema(table="people", axes=axes, n_records_max=n_records_max)


def csv_of(folder: Path, text: str | bytes) -> SourceLocation:
    path = folder / "people.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return SourceLocation(path=path)


def refusal(schema: Schema, location: SourceLocation) -> str:
    with pytest.raises(ConfigurationInvalid) as caught:
        DuckDbSource(schema, location)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return caught.value.explain()


@pytest.mark.parametrize(
    ("axis", "bad"),
    [
        *((INTEGER, text) for text in (f"c{CANARY}", f"{CANARY}.5", "0x10", "1e3", "--1")),
        *((NUMERIC, text) for text in (f"c{CANARY}", "1,5", "ten")),
        *((DATE, text) for text in (f"c{CANARY}", "2020-02-30", "2020-01-01 10:00", "1/2/2020")),
        *((BOOLEAN, text) for text in (f"c{CANARY}", "maybe")),
    ],
)
def test_a_value_of_another_type_is_refused_by_column_and_never_quoted(
    tmp_path: Path, axis: Axis, bad: str
) -> None:
    said = refusal(schema_of(axis), csv_of(tmp_path, f'a\n"{bad}"\n'))
    assert (
        f"tables.people.columns.a: the source holds a value that is not of type {axis.sql_type}"
        in said
    )
    assert bad not in said


def test_every_column_at_fault_is_listed_at_once(tmp_path: Path) -> None:
    axes = [IntegerAxis(name=name, low=0, high=9) for name in ("a", "b", "c")]
    said = refusal(schema_of(*axes), csv_of(tmp_path, "a,b,c\nx,1,x\n"))
    assert "2 problems" in said
    assert "columns.a:" in said
    assert "columns.c:" in said


def test_absent_columns_are_listed_with_their_keys(tmp_path: Path) -> None:
    axes = [IntegerAxis(name=name, low=0, high=9) for name in ("a", "my b", "c")]
    said = refusal(schema_of(*axes), csv_of(tmp_path, "a\n1\n"))
    assert 'tables.people.columns."my b": the source has no such column' in said
    assert "tables.people.columns.c: the source has no such column" in said


@pytest.mark.parametrize(
    ("axis", "array"),
    [
        (INTEGER, pa.array(["1"])),
        (INTEGER, pa.array([True])),
        (NUMERIC, pa.array([dt.date(2020, 1, 1)])),
        (CATEGORY, pa.array([1])),
        (BOOLEAN, pa.array([1])),
        (DATE, pa.array([dt.datetime(2020, 1, 1)])),  # noqa: DTZ001 - a column without time zone
        (CATEGORY, pa.array([{"x": 1}])),
    ],
    ids=str,
)
def test_a_column_type_that_cannot_fit_is_refused(
    tmp_path: Path, axis: Axis, array: pa.Array
) -> None:
    pq.write_table(pa.table({"a": array}), tmp_path / "people.parquet")
    said = refusal(schema_of(axis), SourceLocation(path=tmp_path / "people.parquet"))
    assert "in the source, which does not fit the declared kind" in said


def test_a_float_column_with_fractions_is_no_integer_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1.0, 2.5]}), tmp_path / "people.parquet")
    said = refusal(schema_of(INTEGER), SourceLocation(path=tmp_path / "people.parquet"))
    assert "a value that is not of type BIGINT" in said


def test_more_records_than_declared_are_refused_without_their_number(tmp_path: Path) -> None:
    location = csv_of(tmp_path, "a\n" + "1\n" * 7)
    said = refusal(schema_of(INTEGER, n_records_max=6), location)
    assert "tables.people.n_records_max" in said
    assert "7" not in said.replace(str(tmp_path), "")
    DuckDbSource(schema_of(INTEGER, n_records_max=7), location)


@pytest.mark.parametrize(
    "text",
    [
        f"a,b\n1,2\n{CANARY}\n",
        f"a,b\n1,2,{CANARY}\n",
        f'a,b\n1,"{CANARY}\n',
        b"a,b\n1,\xff\xfe" + CANARY.encode(),
        b"\xff\xfea\n" + CANARY.encode(),
        b"a,b\n1,2\n\x00\x00" + CANARY.encode() + b"\n",
    ],
    ids=["short line", "long line", "open quote", "latin-1", "utf-16 header", "zeros"],
)
def test_a_damaged_csv_is_refused_without_a_word_of_its_rows(
    tmp_path: Path, text: str | bytes
) -> None:
    axes = (INTEGER, CategoryAxis(name="b", values=("2",)))
    assert CANARY not in refusal(schema_of(*axes), csv_of(tmp_path, text))


@pytest.mark.parametrize("text", ["", "a,A\n1,2\n"], ids=["empty", "repeated name"])
def test_a_csv_needs_a_line_of_distinct_names(tmp_path: Path, text: str) -> None:
    assert "distinct column names" in refusal(schema_of(INTEGER), csv_of(tmp_path, text))


@pytest.mark.parametrize("name", ["people.parquet", "people.duckdb"])
def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(CANARY * 1000)
    table = "t" if name.endswith("duckdb") else None
    location = SourceLocation(path=tmp_path / name, source_table=table)
    said = refusal(schema_of(INTEGER), location)
    assert f"cannot be read as a {location.kind} file" in said
    assert CANARY not in said


def test_a_missing_file_or_table_is_refused(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(schema_of(INTEGER), SourceLocation(path=tmp_path / "x.csv"))
    duckdb.connect(tmp_path / "x.duckdb").close()
    location = SourceLocation(path=tmp_path / "x.duckdb", source_table="absent")
    assert "cannot be read" in refusal(schema_of(INTEGER), location)


def test_a_path_that_could_be_a_pattern_is_refused(tmp_path: Path) -> None:
    (tmp_path / "part*.csv").write_text("a\n1\n")
    location = SourceLocation(path=tmp_path / "part*.csv")
    assert "rename it" in refusal(schema_of(INTEGER), location)


def test_changes_beside_a_database_file_are_refused(tmp_path: Path) -> None:
    duckdb.connect(tmp_path / "x.duckdb").close()
    (tmp_path / "x.duckdb.wal").write_bytes(b"")
    location = SourceLocation(path=tmp_path / "x.duckdb", source_table="t")
    assert "CHECKPOINT" in refusal(schema_of(INTEGER), location)


def test_a_database_file_is_let_go_once_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    source = DuckDbSource(schema_of(INTEGER), SourceLocation(path=path, source_table="t"))
    path.unlink()
    assert source.measure(each(schema_of(INTEGER))).counts.tolist() == [1]


def test_the_outside_world_is_closed(tmp_path: Path) -> None:
    location = csv_of(tmp_path, "a\n1\n")
    source = DuckDbSource(schema_of(INTEGER), location)
    local_table = pa.table({"a": [1]})
    assert local_table.num_rows == 1
    for attempt in (
        f"FROM read_csv('{location.path}')",
        f"ATTACH '{tmp_path / 'new.duckdb'}'",
        f"COPY cells TO '{tmp_path / 'copy.csv'}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET temp_directory = '/tmp'",
        "SELECT * FROM local_table",
    ):
        with pytest.raises(duckdb.Error):
            database_of(source).execute(attempt)
    assert list(tmp_path.iterdir()) == [location.path]


def test_what_is_held_is_positions_of_declared_columns_only(tmp_path: Path) -> None:
    source = DuckDbSource(schema_of(INTEGER), csv_of(tmp_path, f"a,name\n1,{CANARY}\n"))
    tables = database_of(source).execute("SHOW TABLES").fetchall()
    assert tables == [("cells",)]
    assert database_of(source).execute("FROM cells").fetchall() == [(1,)]
    assert CANARY not in repr(vars(source))


def test_a_failing_read_says_so_and_nothing_else(tmp_path: Path) -> None:
    source = DuckDbSource(schema_of(INTEGER), csv_of(tmp_path, "a\n1\n"))
    database_of(source).execute("DROP TABLE cells")
    with pytest.raises(SourceUnavailable) as caught:
        source.measure(each(schema_of(INTEGER), "a"))
    assert caught.value.__suppress_context__
    assert caught.value.explain() == "The private table could not be read."


def test_the_fingerprint_is_keyed_and_is_that_of_the_bytes(tmp_path: Path) -> None:
    location = csv_of(tmp_path, "a\n" + "1\n" * 2**20)
    source = DuckDbSource(schema_of(INTEGER, n_records_max=2**21), location)
    expected = hmac.new(b"key", location.path.read_bytes(), hashlib.sha256).hexdigest()
    assert source.fingerprint(b"key") == expected
    assert source.fingerprint(b"other") != expected


def test_two_tables_of_one_database_file_are_not_the_same_data(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE few AS SELECT 1 AS a")
        connection.execute("CREATE TABLE many AS SELECT 1 AS a FROM range(9)")

    def of(table: str) -> str:
        location = SourceLocation(path=path, source_table=table)
        return DuckDbSource(schema_of(INTEGER), location).fingerprint(b"key")

    assert of("few") == of("FEW")
    assert of("few") != of("many")


def _grow(path: Path) -> None:
    with path.open("a") as file:
        file.write("2\n")


def _replace(path: Path) -> None:
    beside = path.with_suffix(".new")
    beside.write_text(path.read_text())
    beside.replace(path)


def _touch(path: Path) -> None:
    os.utime(path, ns=(0, 0))


@pytest.mark.parametrize("change", [_grow, _replace, _touch])
def test_a_file_that_changed_since_it_was_read_has_no_fingerprint(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    location = csv_of(tmp_path, "a\n1\n")
    source = DuckDbSource(schema_of(INTEGER), location)
    change(location.path)
    with pytest.raises(DataChanged):
        source.fingerprint(b"key")


def test_a_location_knows_its_kind_and_checks_itself() -> None:
    assert SourceLocation(path=Path("x.CSV")).kind == "csv"
    for path, table in (("x.txt", None), ("x.duckdb", None), ("x.csv", "t")):
        with pytest.raises(ValueError, match="source"):
            SourceLocation(path=Path(path), source_table=table)


def test_a_table_that_needs_more_memory_than_there_is_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(closed.SETTINGS, "memory_limit", "12MB")
    path = tmp_path / "large.parquet"
    columns = {f"c{place}": pa.array(range(300_000), pa.int64()) for place in range(8)}
    pq.write_table(pa.table(columns), path)
    axes = [IntegerAxis(name=name, low=0, high=300_000) for name in columns]
    said = refusal(schema_of(*axes, n_records_max=10**6), SourceLocation(path=path))
    assert "takes more memory than is available" in said
