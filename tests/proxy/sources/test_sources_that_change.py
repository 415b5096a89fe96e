"""Data that changes behind the fingerprint: each is refused, or noticed, with real files."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.axis import IntegerAxis
from cube.refusals import ConfigurationInvalid, DataChanged, LedgerMismatch
from cube.schema import Schema
from proxy.sources import files
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import Location, PrivateView, SourceLocation
from tests.support.groupings import each

AGE = IntegerAxis(name="age", low=0, high=9)
SCHEMA = Schema(table="people", axes=(AGE,), n_records_max=1000)


def serve(folder: Path, location: Location, schema: Schema = SCHEMA) -> None:
    """Start on a table, as a server does, and stop."""
    with open_ledger(folder / "a.ledger") as ledger:
        open_table(ledger, schema, Fraction(1), DuckDbSource(schema, location), SystemNoise())


def write(path: Path, n_rows: int, line: str = "1") -> SourceLocation:
    path.write_text("age\n" + f"{line}\n" * n_rows)
    return SourceLocation(path=path)


def counted(location: Location) -> int:
    return int(DuckDbSource(SCHEMA, location).measure(each(SCHEMA)).counts[0])


def refusal(location: Location) -> str:
    with pytest.raises(ConfigurationInvalid) as caught:
        DuckDbSource(SCHEMA, location)
    return caught.value.explain()


@contextmanager
def database(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(path) as connection:
        yield connection


def inside(path: Path, *statements: str, table: str = "people") -> SourceLocation:
    with database(path) as connection:
        for statement in statements:
            connection.execute(statement)
    return SourceLocation(path=path, source_table=table)


def test_a_view_of_a_file_beside_is_no_source_table(tmp_path: Path) -> None:
    """The attack: the view's file loses rows, the fingerprint stays, a raise is the difference."""
    write(tmp_path / "x.csv", 100)
    read = f"read_csv('{tmp_path / 'x.csv'}')"
    location = inside(tmp_path / "people.duckdb", f"CREATE VIEW people AS FROM {read}")
    said = refusal(location)
    assert "people is a view" in said
    assert "CREATE TABLE" in said
    through = PrivateView(sql="FROM a", sources=(("a", location),))
    assert "people is a view" in refusal(through)


def test_a_view_of_a_table_of_the_file_itself_is_refused_too(tmp_path: Path) -> None:
    made = ("CREATE TABLE t AS SELECT 1 AS age", "CREATE VIEW people AS FROM t")
    assert "is a view" in refusal(inside(tmp_path / "people.duckdb", *made))


@pytest.mark.parametrize("table", ["people", "PEOPLE"])
def test_a_base_table_is_served_in_any_letter_case(tmp_path: Path, table: str) -> None:
    made = "CREATE TABLE People AS SELECT 1 AS age FROM range(3)"
    assert counted(inside(tmp_path / "people.duckdb", made, table=table)) == 3


def test_a_table_macro_is_no_source_table(tmp_path: Path) -> None:
    made = "CREATE MACRO people() AS TABLE SELECT 1 AS age"
    assert "no table people" in refusal(inside(tmp_path / "people.duckdb", made))


@pytest.mark.parametrize(
    "table", ["duckdb_tables", "pg_class", "elsewhere.people", "sqlite_master"]
)
def test_only_a_table_of_the_main_schema_is_a_source_table(tmp_path: Path, table: str) -> None:
    made = ("CREATE SCHEMA elsewhere", "CREATE TABLE elsewhere.people AS SELECT 1 AS age")
    assert f"no table {table}" in refusal(inside(tmp_path / "people.duckdb", *made, table=table))


@pytest.mark.parametrize(
    "expression",
    ["other + 1", "CAST(random() * 9 AS INTEGER)", "date_part('second', now())", "later(other)"],
)
def test_a_table_with_a_generated_column_is_refused(tmp_path: Path, expression: str) -> None:
    location = inside(
        tmp_path / "people.duckdb",
        "CREATE MACRO later(x) AS x + epoch(now())",
        f"CREATE TABLE people (other INTEGER, age INTEGER GENERATED ALWAYS AS ({expression}))",
        "INSERT INTO people VALUES (1)",
    )
    assert "generated column" in refusal(location)
    assert "generated column" in refusal(PrivateView(sql="FROM a", sources=(("a", location),)))


def test_what_was_worked_out_when_rows_were_written_is_stored_and_served(tmp_path: Path) -> None:
    location = inside(
        tmp_path / "people.duckdb",
        "CREATE SEQUENCE numbers",
        "CREATE TYPE few AS ENUM ('3', '1')",
        "CREATE TABLE people (age INTEGER DEFAULT nextval('numbers'), kind few DEFAULT '1')",
        "INSERT INTO people (kind) VALUES ('3'), ('1')",
    )
    assert DuckDbSource(SCHEMA, location).measure(each(SCHEMA, "age")).levels[0].tolist() == [1, 2]
    serve(tmp_path, location)
    serve(tmp_path, location)


def test_macros_of_the_file_do_not_stand_in_for_functions(tmp_path: Path) -> None:
    names = ("trunc", "isfinite", "enum_code", "duckdb_tables", "duckdb_columns", "lower")
    macros = [f"CREATE MACRO {name}(x) AS error('called')" for name in names]
    made = "CREATE TABLE people AS SELECT 1.0::DOUBLE AS age"
    assert counted(inside(tmp_path / "people.duckdb", *macros, made)) == 1


def test_a_table_of_a_database_that_was_attached_is_not_in_the_file(tmp_path: Path) -> None:
    inside(tmp_path / "beside.duckdb", "CREATE TABLE people AS SELECT 1 AS age")
    attach = f"ATTACH '{tmp_path / 'beside.duckdb'}' AS beside"
    location = inside(tmp_path / "people.duckdb", attach, table="beside.people")
    assert "no table beside.people" in refusal(location)
    view = inside(tmp_path / "people.duckdb", attach, "CREATE VIEW people AS FROM beside.people")
    assert "is a view" in refusal(view)


def test_a_file_of_another_kind_of_database_is_not_read(tmp_path: Path) -> None:
    header = b"SQLite format 3\x00" + bytes(4080)
    (tmp_path / "people.duckdb").write_bytes(header)
    location = SourceLocation(path=tmp_path / "people.duckdb", source_table="people")
    assert "is an SQLite database" in refusal(location)


def test_an_encrypted_database_is_refused(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        path = tmp_path / "people.duckdb"
        connection.execute("SET force_mbedtls_unsafe = true")
        connection.execute(f"ATTACH '{path}' AS a (ENCRYPTION_KEY 'secret')")
        connection.execute("CREATE TABLE a.people AS SELECT 1 AS age")
    location = SourceLocation(path=path, source_table="people")
    assert "cannot be read as a duckdb file" in refusal(location)


@pytest.mark.parametrize("suffix", [".wal", ".wal.checkpoint", ".wal.recovery"])
def test_rows_that_are_not_yet_in_the_file_are_refused(tmp_path: Path, suffix: str) -> None:
    location = inside(tmp_path / "people.duckdb", "CREATE TABLE people AS SELECT 1 AS age")
    (tmp_path / f"people.duckdb{suffix}").write_bytes(b"")
    assert "CHECKPOINT" in refusal(location)


def test_committed_rows_of_a_log_beside_the_file_are_refused(tmp_path: Path) -> None:
    """Real rows: a process that was killed before it moved them into the file."""
    path = tmp_path / "writing.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE people AS SELECT 1 AS age")
        connection.execute("CHECKPOINT")
        connection.execute("INSERT INTO people VALUES (2)")
        for name in (path.name, f"{path.name}.wal"):
            shutil.copy(tmp_path / name, tmp_path / name.replace("writing", "people"))
    location = SourceLocation(path=tmp_path / "people.duckdb", source_table="people")
    assert "CHECKPOINT" in refusal(location)
    (tmp_path / "people.duckdb.wal").unlink()
    assert counted(location) == 1


def test_a_log_that_appears_while_the_file_is_read_is_noticed(
    tmp_path: Path,
) -> None:
    location = inside(tmp_path / "people.duckdb", "CREATE TABLE people AS SELECT 1 AS age")
    source = DuckDbSource(SCHEMA, location)
    (tmp_path / "people.duckdb.wal").write_bytes(b"")
    with pytest.raises(DataChanged):
        source.fingerprint(b"key")


def test_a_link_that_points_elsewhere_is_other_data(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one.csv", 3), write(tmp_path / "two.csv", 4)
    link = tmp_path / "people.csv"
    link.symlink_to(one.path)
    location = SourceLocation(path=link)
    serve(tmp_path, location)
    link.unlink()
    link.symlink_to(two.path)
    with pytest.raises(DataChanged):
        serve(tmp_path, location)
    link.unlink()
    write(two.path, 3)
    link.symlink_to(two.path)  # the very same bytes
    serve(tmp_path, location)


def test_a_link_that_moves_while_the_file_is_read_is_noticed(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one.csv", 3), write(tmp_path / "two.csv", 3)
    link = tmp_path / "people.csv"
    link.symlink_to(one.path)
    source = DuckDbSource(SCHEMA, SourceLocation(path=link))
    link.unlink()
    link.symlink_to(two.path)
    with pytest.raises(DataChanged):
        source.fingerprint(b"key")


def test_another_name_of_the_same_file_is_the_same_data(tmp_path: Path) -> None:
    location = write(tmp_path / "people.csv", 3)
    serve(tmp_path, location)
    (tmp_path / "again.csv").hardlink_to(location.path)
    other = Schema(table="others", axes=(AGE,), n_records_max=1000)
    with pytest.raises(LedgerMismatch, match="records the data of others under the name people"):
        serve(tmp_path, SourceLocation(path=tmp_path / "again.csv"), other)


def test_the_same_file_with_other_columns_is_given_no_second_budget(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("age,height\n1,2\n")
    serve(tmp_path, SourceLocation(path=path))
    axes = (IntegerAxis(name="height", low=0, high=9),)
    other = Schema(table="others", axes=axes, n_records_max=1000)
    with pytest.raises(LedgerMismatch, match="records the data of others under the name people"):
        serve(tmp_path, SourceLocation(path=path), other)


def test_a_write_that_hides_its_time_is_noticed(tmp_path: Path) -> None:
    location = write(tmp_path / "people.csv", 3)
    before = location.path.stat()
    source = DuckDbSource(SCHEMA, location)
    write(location.path, 3, line="2")
    os.utime(location.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(DataChanged):
        source.fingerprint(b"key")


def test_a_file_that_is_replaced_while_it_is_read_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = write(tmp_path / "people.csv", 3)
    other = write(tmp_path / "new.csv", 4)
    opened = files.opened

    def replaced_first(*arguments: Any) -> files.Relation:
        other.path.replace(location.path)
        return opened(*arguments)

    monkeypatch.setattr(files, "opened", replaced_first)
    with pytest.raises(DataChanged, match="changed while it was being read"):
        DuckDbSource(SCHEMA, location)


@pytest.mark.parametrize("name", ["people.csv", "people.parquet", "people.duckdb"])
def test_what_is_no_file_is_refused_before_it_is_opened(tmp_path: Path, name: str) -> None:
    """A pipe would hang, and give its rows once; a device gives what it likes."""
    path = tmp_path / name
    location = SourceLocation(path=path, source_table="t" if "duckdb" in name else None)
    os.mkfifo(path)
    assert "is not a file" in refusal(location)
    path.unlink()
    path.symlink_to("/dev/zero")
    assert "is not a file" in refusal(location)
    path.unlink()
    path.mkdir()
    assert "is not a file" in refusal(location)
    path.rmdir()
    path.symlink_to(path)
    assert "cannot be read: there is no such file" in refusal(location)


def test_bytes_of_another_file_are_not_hashed_for_those_that_were_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is swapped while they are hashed, and swapped back: no time of the file tells."""
    folder = tmp_path / "data"
    folder.mkdir()
    location = write(folder / "people.csv", 3)
    source = DuckDbSource(SCHEMA, location)
    state = files.FileState.of(location.path)
    folder.rename(tmp_path / "aside")
    folder.mkdir()
    write(location.path, 4)
    monkeypatch.setattr(files.FileState, "of", lambda _path: state)
    with pytest.raises(DataChanged):
        source.fingerprint(b"key")


def test_two_names_of_one_database_file_are_attached_once(tmp_path: Path) -> None:
    one = inside(tmp_path / "people.duckdb", "CREATE TABLE people AS SELECT 1 AS age")
    (tmp_path / "link.duckdb").symlink_to(one.path)
    other = SourceLocation(path=tmp_path / "link.duckdb", source_table="PEOPLE")
    view = PrivateView(sql="FROM a UNION ALL FROM b", sources=(("a", one), ("b", other)))
    assert counted(view) == 2


def test_a_pattern_of_parquet_files_is_refused_and_no_other_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    for name in ("a.parquet", "b.parquet"):
        pq.write_table(pa.table({"age": [1]}), folder / name)
    pattern = SourceLocation(path=folder / "*.parquet")
    assert "cannot be read" in refusal(pattern)
    shutil.copy(folder / "a.parquet", pattern.path)  # now there is a file of this very name
    assert "rename it" in refusal(pattern)
    assert counted(SourceLocation(path=folder / "a.parquet")) == 1
    (tmp_path / "all.parquet").symlink_to(folder)
    assert "is not a file" in refusal(SourceLocation(path=tmp_path / "all.parquet"))


def test_a_parquet_file_whose_columns_lie_in_another_is_refused(tmp_path: Path) -> None:
    found: list[pq.FileMetaData] = []
    pq.write_table(pa.table({"age": [1, 2]}), tmp_path / "part.parquet", metadata_collector=found)
    found[0].set_file_path("part.parquet")
    found[0].write_metadata_file(tmp_path / "people.parquet")
    said = refusal(SourceLocation(path=tmp_path / "people.parquet"))
    assert "cannot be read as a parquet file" in said


def test_names_of_folders_are_no_columns(tmp_path: Path) -> None:
    folder = tmp_path / "age=7" / "column_0=7"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"x": [1]}), folder / "people.parquet")
    assert "no such column" in refusal(SourceLocation(path=folder / "people.parquet"))
    written = write(folder / "people.csv", 1)
    assert DuckDbSource(SCHEMA, written).measure(each(SCHEMA, "age")).levels[0].tolist() == [1]
    (folder / "people.csv").write_text("x\n1\n")
    assert "no such column" in refusal(SourceLocation(path=folder / "people.csv"))
    view = PrivateView(sql="FROM a", sources=(("a", SourceLocation(path=folder / "people.csv")),))
    assert "no such column" in refusal(view)


def test_a_packed_file_behind_a_link_is_not_unpacked(tmp_path: Path) -> None:
    """What a file holds must not hang on what it is called."""
    (tmp_path / "people.csv.gz").write_text("age\n" + "1\n" * 3)
    (tmp_path / "people.csv").symlink_to(tmp_path / "people.csv.gz")
    assert counted(SourceLocation(path=tmp_path / "people.csv")) == 3


@pytest.mark.parametrize(
    "changed", ["\ufeffage\n1\n", 'age\n"1"\n', "age\r\n1\r\n", "age\n1", '"age"\n1\n']
)
def test_the_same_rows_written_otherwise_are_refused(tmp_path: Path, changed: str) -> None:
    location = write(tmp_path / "people.csv", 1)
    serve(tmp_path, location)
    location.path.write_text(changed)
    assert counted(location) == 1
    with pytest.raises(DataChanged):
        serve(tmp_path, location)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CAST(random() * 2**50 AS BIGINT) % 10 AS age FROM a, range(200)",
        "SELECT CAST(hash(uuid()) % 10 AS BIGINT) AS age FROM a, range(200)",
        "SELECT CAST(epoch_us(now()) // 10**i % 10 AS INTEGER) AS age FROM a, range(3) r(i)",
    ],
    ids=["random", "uuid", "now"],
)
def test_a_view_that_gives_other_rows_each_time_has_another_fingerprint_each_time(
    tmp_path: Path, sql: str
) -> None:
    view = PrivateView(sql=sql, sources=(("a", write(tmp_path / "people.csv", 1)),))
    fingerprints = {DuckDbSource(SCHEMA, view).fingerprint(b"key") for _ in range(5)}
    assert len(fingerprints) > 1  # the digits of a clock may come again once


@pytest.mark.parametrize(
    "source", ["read_text('{}')", "read_blob('{}')", "glob('{}*')", "read_csv('{}')", "'{}'"]
)
def test_a_table_of_a_database_is_read_with_the_outside_world_closed(
    tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even were a view taken for a table, what it reads is closed before the file is opened."""
    write(tmp_path / "x.csv", 1)
    reads = source.format(tmp_path / "x.csv")
    made = f"CREATE VIEW people AS SELECT 1 AS age FROM {reads}"  # noqa: S608 - this test's own text
    location = inside(tmp_path / "people.duckdb", made)
    monkeypatch.setattr("proxy.sources.files.check_base_table", lambda *_: "people")
    assert "cannot be read as a duckdb file" in refusal(location)
