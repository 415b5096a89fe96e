"""A table that stays in its engine is counted only while its rows are those that were surveyed."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cube.axis import CategoryAxis, IntegerAxis
from cube.refusals import ConfigurationInvalid, SourceUnavailable
from cube.schema import Schema
from proxy.sources.pushdown import source as source_module
from proxy.sources.pushdown.source import PushedDownSource
from proxy.sources.pushdown.statements import N_WRITERS_MAX
from tests.proxy.sources.conformance.places import KEY, BehindSpark, InPostgres, Rows, fill
from tests.support.groupings import each
from tests.support.postgres import PostgresServer
from tests.support.sail import SailServer

AXES = (
    CategoryAxis(name="sex", values=("f", "m")),
    IntegerAxis(name="age", low=0, high=9, null=True),
)
SCHEMA = Schema(table="people", axes=AXES, n_records_max=100, unit="id")
TABLE = pa.table(
    {"id": list(range(20)), "sex": ["f", "m"] * 10, "age": [place % 10 for place in range(20)]}
)
TYPES = {"id": "int", "sex": "text", "age": "int"}
SWAPPED = """ALTER TABLE {t} RENAME age TO old; ALTER TABLE {t} RENAME id TO age;
ALTER TABLE {t} RENAME old TO id"""


@pytest.fixture
def people(postgres_server: PostgresServer) -> Iterator[tuple[InPostgres, str]]:
    place = InPostgres(postgres_server)
    table = f"t_{uuid4().hex}"
    fill(place.connection, table, Rows(TABLE, TYPES))
    yield place, table
    place.connection.close()


def run(connection: psycopg.Connection, statement: str) -> None:
    connection.execute(statement.encode())


def n_rows(source: PushedDownSource) -> int:
    return int(source.measure(each(SCHEMA)).counts[0])


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO {t} VALUES (99, 'f', 3)",
        "DELETE FROM {t} WHERE id = 3",
        "UPDATE {t} SET age = 5 WHERE id = 3",
        "DELETE FROM {t} WHERE id = 3; INSERT INTO {t} VALUES (99, 'm', 4)",
        SWAPPED,
        "TRUNCATE {t}",
    ],
)
@pytest.mark.parametrize("n_writers_max", [N_WRITERS_MAX, 0])
def test_rows_that_are_others_are_not_measured(
    people: tuple[InPostgres, str],
    change: str,
    n_writers_max: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether rows are grouped by who wrote them, or have their ages looked up one by one."""
    monkeypatch.setattr(source_module, "N_WRITERS_MAX", n_writers_max)
    place, table = people
    source = PushedDownSource(SCHEMA, place.engine(table), KEY)
    assert n_rows(source) == TABLE.num_rows
    source.look()
    run(place.connection, change.format(t=table))
    with pytest.raises(SourceUnavailable):
        n_rows(source)
    # From now on nothing is charged.
    with pytest.raises(SourceUnavailable):
        source.look()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE {t} SET age = age",
        "VACUUM FULL {t}",
        "CREATE TABLE copy AS TABLE {t}; DROP TABLE {t}; ALTER TABLE copy RENAME TO {t}",
        "ALTER TABLE {t} ADD COLUMN note text DEFAULT 'x'",
    ],
)
def test_the_same_rows_written_anew_are_measured(
    people: tuple[InPostgres, str], change: str
) -> None:
    place, table = people
    source = PushedDownSource(SCHEMA, place.engine(table), KEY)
    fingerprints = source.fingerprint(KEY), source.rows_fingerprint(KEY)
    for statement in change.format(t=table).split(";"):
        run(place.connection, statement)
    assert n_rows(source) == TABLE.num_rows
    assert n_rows(source) == TABLE.num_rows
    again = PushedDownSource(SCHEMA, place.engine(table), KEY)
    assert (again.fingerprint(KEY), again.rows_fingerprint(KEY)) == fingerprints


def test_a_connection_is_kept_between_looks_and_made_anew_once_it_is_lost(
    people: tuple[InPostgres, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, table = people

    def others() -> dict[int, str]:
        found = place.connection.execute(
            "SELECT pid, state FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return dict(found.fetchall())

    before = others()
    source = PushedDownSource(SCHEMA, place.engine(table), KEY)
    kept = others().keys() - before.keys()
    assert n_rows(source) == TABLE.num_rows
    (pid,) = kept
    assert others().keys() - before.keys() == kept
    assert others()[pid] == "idle"  # and in no transaction
    place.connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
    monkeypatch.setattr(source_module, "PAUSES_SECONDS", ())  # nothing is tried twice
    assert n_rows(source) == TABLE.num_rows
    assert pid not in others()


def test_data_that_is_restored_is_measured_again(people: tuple[InPostgres, str]) -> None:
    place, table = people
    source = PushedDownSource(SCHEMA, place.engine(table), KEY)
    run(place.connection, f"DELETE FROM {table} WHERE id = 3")  # noqa: S608 - a test\'s own
    with pytest.raises(SourceUnavailable):
        n_rows(source)
    run(place.connection, f"INSERT INTO {table} VALUES (3, 'm', 3)")  # noqa: S608 - a test\'s own
    source.look()
    assert n_rows(source) == TABLE.num_rows


def test_a_transaction_that_was_open_during_the_survey_is_noticed_when_it_ends(
    people: tuple[InPostgres, str], postgres_server: PostgresServer
) -> None:
    place, table = people
    with postgres_server.connect() as other:
        run(other, "BEGIN")
        run(other, f"UPDATE {table} SET age = 0 WHERE id = 9")  # noqa: S608 - a test\'s own
        source = PushedDownSource(SCHEMA, place.engine(table), KEY)
        assert n_rows(source) == TABLE.num_rows
        run(other, "COMMIT")
    with pytest.raises(SourceUnavailable):
        n_rows(source)


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("INSERT INTO {t} VALUES (3, 'f', 1)", "a value twice"),
        ("INSERT INTO {t} VALUES (NULL, 'f', 1)", "the source holds NULL"),
        ("ALTER TABLE {t} DROP COLUMN age", "no such column"),
        ("ALTER TABLE {t} ALTER age TYPE text", "does not fit"),
        ("INSERT INTO {t} SELECT 1000 + i, 'f', 1 FROM generate_series(1, 100) i", "n_records_max"),
    ],
)
def test_what_is_not_as_declared_is_refused_without_a_value(
    people: tuple[InPostgres, str], statement: str, named: str
) -> None:
    place, table = people
    run(place.connection, statement.format(t=table))
    with pytest.raises(ConfigurationInvalid) as refused:
        PushedDownSource(SCHEMA, place.engine(table), KEY)
    assert named in str(refused.value)


def test_a_view_is_refused(people: tuple[InPostgres, str]) -> None:
    place, table = people
    run(place.connection, f"CREATE VIEW v_{table} AS TABLE {table}")
    with pytest.raises(ConfigurationInvalid, match="cannot be counted where it is"):
        PushedDownSource(SCHEMA, place.engine(f"v_{table}"), KEY)


def test_units_with_several_rows_are_read_by_an_extract(people: tuple[InPostgres, str]) -> None:
    place, table = people
    several = Schema(table="t", axes=AXES, n_records_max=100, unit="id", rows_per_unit_max=2)
    with pytest.raises(ConfigurationInvalid) as refused:
        PushedDownSource(several, place.engine(table), KEY)
    assert 'extract = "file"' in str(refused.value.hint)


def test_a_statement_that_takes_too_long_is_given_up(people: tuple[InPostgres, str]) -> None:
    place, table = people
    engine = place.engine(table, timeout=0.2)
    source = PushedDownSource(SCHEMA, engine, KEY)
    with place.connection.transaction():
        run(place.connection, f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(SourceUnavailable):
            n_rows(source)
    assert n_rows(source) == TABLE.num_rows


def test_files_of_spark_that_are_added_are_noticed_at_the_next_count(
    sail: SailServer, tmp_path: Path
) -> None:
    place, folder = BehindSpark(tmp_path, sail.address), tmp_path / "people"
    folder.mkdir()
    pq.write_table(TABLE, folder / "1.parquet")
    source = PushedDownSource(SCHEMA, place.engine(folder), KEY)
    assert n_rows(source) == TABLE.num_rows
    pq.write_table(
        TABLE.slice(1).set_column(0, "id", pa.array(range(50, 69))), folder / "2.parquet"
    )
    with pytest.raises(SourceUnavailable):
        n_rows(source)


def test_rows_of_spark_that_change_are_noticed_at_the_next_start(
    sail: SailServer, tmp_path: Path
) -> None:
    place = BehindSpark(tmp_path, sail.address)
    path = tmp_path / "people.parquet"
    pq.write_table(TABLE, path)
    before = PushedDownSource(SCHEMA, place.engine(path), KEY)
    assert n_rows(before) == TABLE.num_rows
    pq.write_table(TABLE.slice(1), path)
    after = PushedDownSource(SCHEMA, place.engine(path), KEY)
    assert after.rows_fingerprint(KEY) != before.rows_fingerprint(KEY)


def test_engines_agree_on_the_digest_of_rows(
    people: tuple[InPostgres, str], sail: SailServer, tmp_path: Path
) -> None:
    """What differs is the key, which is of the place; the same key gives the same sums."""
    place, table = people
    path = tmp_path / "people.parquet"
    pq.write_table(TABLE, path)
    engines = place.engine(table), BehindSpark(tmp_path, sail.address).engine(path)
    for engine in engines:
        engine.label = "the same"
    first, second = (PushedDownSource(SCHEMA, engine, KEY) for engine in engines)
    assert first.rows_fingerprint(KEY) == second.rows_fingerprint(KEY)


def test_nothing_of_an_engine_is_said_in_an_error(
    people: tuple[InPostgres, str], sail: SailServer, tmp_path: Path
) -> None:
    place, _table = people
    for engine in (
        place.engine("no_such"),
        BehindSpark(tmp_path, sail.address).engine(tmp_path / "n"),
    ):
        with pytest.raises(ConfigurationInvalid) as refused:
            PushedDownSource(SCHEMA, engine, KEY)
        said = f"{refused.value} {refused.value.hint}"
        assert KEY.hex() not in said
        assert "SELECT" not in said
        assert "Exception" not in said
