"""Connections: answers with their receipts, accuracy for one statement and for all, DBAPI."""

import datetime as dt
from decimal import Decimal

import polars as pl
import pytest

import tacit_client
from cube.refusals import NotAuthenticated
from proxy.api.requests import Caller
from proxy.engine.engine import Engine
from proxy.identity.presented import PresentedCredentials
from proxy.shared.tokens import new_token, token_hash
from tests.support.engine_fake import COUNT_ALL, CannedEngine
from tests.support.serving import serving
from tests.support.synthetic import ANN, spent

BY_CITY = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
TOKEN = new_token()


class OnlyAnn:
    """Knows one token."""

    def identify(self, presented: PresentedCredentials) -> Caller:
        if presented.token_hash != token_hash(TOKEN):
            raise NotAuthenticated("Who is it?")
        return ANN


def test_it_is_a_dbapi_module() -> None:
    assert (tacit_client.apilevel, tacit_client.paramstyle) == ("2.0", "qmark")
    assert issubclass(tacit_client.Refused, tacit_client.DatabaseError)
    assert issubclass(tacit_client.NotCovered, tacit_client.OperationalError)
    assert issubclass(tacit_client.InvalidStatement, tacit_client.ProgrammingError)


def test_an_answer_has_rows_and_a_receipt(
    connection: tacit_client.Connection, engine: Engine
) -> None:
    answer = connection.sql(BY_CITY)
    assert [row[0] for row in answer] == ["Oslo", "Paris", "Rome", None]
    assert answer.source == "measured"
    assert answer.epsilon_spent == float(spent(engine)) > 0
    assert answer.epsilon_left == 10 - answer.epsilon_spent
    again = connection.sql(BY_CITY)
    assert (again.source, again.epsilon_spent) == ("history", 0)
    assert again.fetchall() == answer.fetchall()


def test_what_a_statement_asks_goes_before_what_the_connection_asks(address: str) -> None:
    count = "SELECT COUNT(*) AS n FROM people WHERE age < 50"
    widths = []
    with tacit_client.connect(address, half_width=300, confidence=0.9) as connection:
        for answer in (connection.sql(count), connection.sql(count, half_width=100)):
            ends = answer.answers[0].interval(0)
            assert ends is not None
            assert answer.answers[0].confidence == 0.9
            widths.append((ends[1] - ends[0]) / 2)
    assert 100 < widths[0] <= 300
    assert widths[1] <= 100


def test_a_relative_width_goes_in_place_of_the_connections_half_width(
    connection: tacit_client.Connection,
) -> None:
    answer = connection.sql("SELECT COUNT(*) AS n FROM people", relative=0.5, at_least=100)
    (n,) = answer.fetchall()[0]
    ends = answer.answers[0].interval(0)
    assert ends is not None
    assert (ends[1] - ends[0]) / 2 <= 0.5 * max(n, 100)


def test_a_cap_is_kept_to_the_last_digit(connection: tacit_client.Connection) -> None:
    with pytest.raises(tacit_client.NotCovered) as caught:
        connection.sql(BY_CITY, epsilon=0)
    needed = caught.value.epsilon_needed
    assert needed is not None
    below = Decimal(needed) - Decimal("1e-20")
    with pytest.raises(tacit_client.NotCovered):
        connection.sql(BY_CITY, epsilon=below)
    assert connection.sql(BY_CITY, epsilon=needed).epsilon_spent == needed


def test_an_explanation_and_the_budget_are_free(
    connection: tacit_client.Connection, engine: Engine
) -> None:
    assert "candidate" in connection.explain(BY_CITY).columns
    names = connection.budget().to_arrow().column("table_name").to_pylist()
    assert sorted(names) == ["people", "staff"]
    assert spent(engine) == 0


def test_tables_are_listed_with_their_columns(connection: tacit_client.Connection) -> None:
    tables = {(table.schema, table.name): table for table in connection.tables()}
    assert {("public", "people"), ("public", "cities"), ("data_privacy", "budgets")} <= set(tables)
    age, city, *_ = tables["public", "people"].columns
    assert (age.name, age.sql_type, age.comment) == ("age", "BIGINT", "0 .. 99")
    assert (city.nullable, city.is_primary_key) == (True, False)
    assert [c.is_primary_key for c in tables["public", "cities"].columns] == [True, False]
    budgets = tables["data_privacy", "budgets"]
    assert budgets.is_view
    assert budgets.columns[1].sql_type == "DOUBLE"


def test_parameters_go_by_place_or_by_name(connection: tacit_client.Connection) -> None:
    sql = "SELECT COUNT(*) AS n FROM people WHERE city = {} AND age >= {}"
    by_place = connection.sql(sql.format("?", "?"), ("Oslo", 30))
    by_name = connection.sql(sql.format(":city", ":age"), {"age": 30, "city": "Oslo"})
    written = connection.sql(sql.format("'Oslo'", "30"))
    assert by_place.fetchall() == by_name.fetchall() == written.fetchall()
    assert (by_name.epsilon_spent, written.epsilon_spent) == (0, 0)


def test_a_cursor_gives_rows_as_dbapi_has_it(connection: tacit_client.Connection) -> None:
    with connection.cursor() as cursor:
        assert (cursor.description, cursor.rowcount) == (None, -1)
        cursor.execute("SELECT city, country FROM cities ORDER BY city")
        assert cursor.description is not None
        assert [column[0] for column in cursor.description] == ["city", "country"]
        assert cursor.rowcount == 2
        assert cursor.fetchone() == ("Oslo", "Norway")
        assert cursor.fetchmany(5) == [("Rome", "Italy")]
        assert (cursor.fetchone(), cursor.fetchall()) == (None, [])
        assert cursor.receipt is None
        assert list(cursor.execute("SELECT city FROM cities LIMIT 1")) == [("Oslo",)]
        cursor.execute(BY_CITY)
        assert cursor.receipt is not None
        assert cursor.receipt.table == "people"
        with pytest.raises(tacit_client.NotSupportedError):
            cursor.executemany("SELECT ?", [(1,)])
    with pytest.raises(tacit_client.ProgrammingError, match="closed"):
        cursor.fetchone()


def test_polars_reads_from_the_connection_itself(connection: tacit_client.Connection) -> None:
    frame = pl.read_database("SELECT city, country FROM cities ORDER BY city", connection)
    assert frame.rows() == [("Oslo", "Norway"), ("Rome", "Italy")]


def test_values_come_as_python_has_them(connection: tacit_client.Connection) -> None:
    row = connection.sql("SELECT 1, 'a', TRUE, DATE '2024-02-29', NULL, 0.5::DOUBLE").fetchall()
    assert row == [(1, "a", True, dt.date(2024, 2, 29), None, 0.5)]


def test_a_token_is_presented_and_comes_from_the_environment_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(CannedEngine(), authenticator=OnlyAnn()) as address:
        with tacit_client.connect(address, token=TOKEN) as connection:
            assert connection.sql(COUNT_ALL).fetchall() == [(1234.5,)]
        with (
            tacit_client.connect(address) as connection,
            pytest.raises(tacit_client.Refused, match="not_authenticated"),
        ):
            connection.sql(COUNT_ALL)
        monkeypatch.setenv("TACIT_TOKEN", TOKEN)
        monkeypatch.setenv("TACIT_SERVER", address)
        with tacit_client.connect() as connection:
            assert connection.sql(COUNT_ALL).fetchall() == [(1234.5,)]


def test_a_closed_connection_says_so(connection: tacit_client.Connection) -> None:
    connection.commit()
    connection.rollback()
    connection.close()
    assert repr(connection) == "<tacit_client.Connection closed>"
    with pytest.raises(tacit_client.InterfaceError, match="closed"):
        connection.sql("SELECT 1")


def test_where_no_server_is_the_error_says_where() -> None:
    with (
        tacit_client.connect("127.0.0.1:1") as connection,
        pytest.raises(tacit_client.OperationalError, match=r"No Tacit server .*127\.0\.0\.1:1"),
    ):
        connection.sql("SELECT 1")
