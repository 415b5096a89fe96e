"""What PostgreSQL says of a moment: nobody wrote anything since, so rows need not be asked."""

from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import psycopg
import pytest

from cube.refusals import ConfigurationInvalid, SourceUnavailable
from proxy.sources.pushdown.postgres import Postgres
from proxy.sources.pushdown.source import N_NUMBERS, PushedDownSource
from tests.proxy.sources.conformance.places import KEY, InPostgres, Rows, fill
from tests.proxy.sources.pushdown.test_rows_that_change import (
    SCHEMA,
    SWAPPED,
    TABLE,
    TYPES,
    n_rows,
    run,
)
from tests.support.groupings import each
from tests.support.postgres import PostgresServer


@pytest.fixture
def people(postgres_server: PostgresServer) -> Iterator[tuple[InPostgres, str]]:
    place = InPostgres(postgres_server)
    table = f"t_{uuid4().hex}"
    fill(place.connection, table, Rows(TABLE, TYPES))
    yield place, table
    place.connection.close()


def asked_who_wrote(source: PushedDownSource) -> bool:
    """Whether the next count would ask rows who wrote them."""
    with source._engine.reading() as reading:
        return not source._look_at_rows(reading.identity).asks_nothing


def test_rows_are_asked_who_wrote_them_only_if_anybody_wrote_anything(
    people: tuple[InPostgres, str],
) -> None:
    place, table = people
    source = PushedDownSource(SCHEMA, place.engine(table), KEY)
    assert not asked_who_wrote(source)
    assert n_rows(source) == TABLE.num_rows
    run(place.connection, f"CREATE TABLE other_{table} (a int)")
    assert asked_who_wrote(source)
    assert n_rows(source) == TABLE.num_rows
    assert not asked_who_wrote(source)


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO {t} VALUES (99, 'f', 3)",
        "DELETE FROM {t} WHERE id = 3",
        "UPDATE {t} SET age = 5 WHERE id = 3",
        "TRUNCATE {t}",
        SWAPPED,
    ],
)
def test_a_change_after_a_quiet_count_is_noticed(
    people: tuple[InPostgres, str], change: str
) -> None:
    place, table = people
    source = PushedDownSource(SCHEMA, place.engine(table), KEY)
    assert n_rows(source) == n_rows(source) == TABLE.num_rows
    assert not asked_who_wrote(source)
    run(place.connection, change.format(t=table))
    with pytest.raises(SourceUnavailable):
        source.measure(each(SCHEMA, "age"))


def test_there_is_no_moment_while_a_transaction_goes_on_that_began_before_another_ended(
    people: tuple[InPostgres, str], postgres_server: PostgresServer
) -> None:
    place, table = people
    source = PushedDownSource(SCHEMA, place.engine(table), KEY)
    with postgres_server.connect() as other:
        run(other, "BEGIN")
        run(other, f"UPDATE {table} SET age = 0 WHERE id = 9")  # noqa: S608 - a test\'s own
        run(place.connection, "SELECT pg_current_xact_id()")
        assert n_rows(source) == n_rows(source) == TABLE.num_rows
        assert asked_who_wrote(source)
        run(other, "COMMIT")
    with pytest.raises(SourceUnavailable):
        n_rows(source)


def test_no_whole_table_is_written_between_a_snapshot_and_its_count(
    people: tuple[InPostgres, str], postgres_server: PostgresServer
) -> None:
    """TRUNCATE empties a table for older snapshots, too."""
    place, table = people
    source = PushedDownSource(SCHEMA, place.engine(table), KEY)
    with source._engine.reading(), postgres_server.connect() as other:
        run(other, "SET lock_timeout = 50")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            run(other, f"TRUNCATE {table}")
    assert n_rows(source) == TABLE.num_rows


def test_a_user_who_may_read_some_columns_is_enough(
    people: tuple[InPostgres, str], postgres_server: PostgresServer
) -> None:
    """Without a lock there is no moment, and rows are asked for their ages at each count."""
    place, table = people
    run(place.connection, f"CREATE ROLE r_{table} LOGIN")
    run(place.connection, f"GRANT SELECT (id, sex, age, xmin) ON {table} TO r_{table}")
    where = f"host={postgres_server.folder} port=5432 user=r_{table} dbname=postgres"
    source = PushedDownSource(SCHEMA, Postgres(table, table, 60.0, lambda: where), KEY)
    assert n_rows(source) == n_rows(source) == TABLE.num_rows
    assert asked_who_wrote(source)
    assert source._known.writers == ()


def test_numbers_of_few_writers_are_trusted_until_they_may_be_those_of_others(
    people: tuple[InPostgres, str],
) -> None:
    """Numbers of transactions begin anew: long after the survey, ages are asked again."""
    place, table = people
    source = PushedDownSource(SCHEMA, place.engine(table), KEY)
    (writer,) = source._known.writers
    with source._engine.reading() as reading:
        now = replace(reading.identity, moment=None)
    assert source._look_at_rows(now).writers == (writer,)
    assert now.following is not None
    late = replace(now, following=now.following + N_NUMBERS // 2)
    assert source._look_at_rows(late).writers == ()


def test_a_table_with_a_part_elsewhere_is_refused(people: tuple[InPostgres, str]) -> None:
    """Its rows are another server's, and nobody there numbers transactions as here."""
    place, table = people
    statements = f"""CREATE TABLE p_{table} (id int, sex text, age int) PARTITION BY LIST (sex);
    CREATE FOREIGN DATA WRAPPER w_{table}; CREATE SERVER s_{table} FOREIGN DATA WRAPPER w_{table};
    CREATE FOREIGN TABLE f_{table} PARTITION OF p_{table} FOR VALUES IN ('f') SERVER s_{table}"""
    for statement in statements.split(";"):
        run(place.connection, statement)
    with pytest.raises(ConfigurationInvalid, match="cannot be counted where it is"):
        PushedDownSource(SCHEMA, place.engine(f"p_{table}"), KEY)
