"""The two protocols of queries, message by message, on a real engine."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from proxy.api.requests import LOCAL, QueryRequest, QueryResult
from proxy.engine.engine import Engine
from tests.support.postgres_wire import postgres_serving
from tests.support.raw_postgres import (
    SYNC,
    RawClient,
    bind,
    describe,
    execute,
    framed,
    parse,
    query,
    raw_client,
    tags,
)
from tests.support.synthetic import synthetic_engine
from tests.support.worlds import people_engine, random_rows

BY_AGE = "SELECT age, COUNT(*) AS n FROM people GROUP BY age"
AFTER_AN_ERROR = "SELECT 1 FROM nobody; SELECT age, COUNT(*) AS n FROM people GROUP BY age"
ABOVE = "SELECT COUNT(*) AS n FROM people WHERE age > $1"


class Counting:
    """An engine that keeps what it answered."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.given: list[QueryResult] = []

    def answer(self, request: QueryRequest) -> QueryResult:
        self.given.append(self._engine.answer(request))
        return self.given[-1]

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)

    @property
    def spent(self) -> Fraction:
        (budget,) = self._engine.budgets(LOCAL)
        return budget.spent


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Counting]:
    with people_engine(tmp_path, random_rows(2000), budget=Fraction(50)) as engine:
        yield Counting(engine)


@pytest.fixture
def client(engine: Counting) -> Iterator[RawClient]:
    with postgres_serving(engine) as address, raw_client(address) as client:  # type: ignore[arg-type]  # answers as an engine does
        client.log_in()
        yield client


def test_a_cursor_is_one_answer(engine: Counting, client: RawClient) -> None:
    replies = client.ask(
        query(f"BEGIN; DECLARE c CURSOR FOR {BY_AGE}; FETCH 3 FROM c; FETCH ALL c")
    )
    # What a client is told of the answers is noisy, too.
    assert tags(replies).replace("N", "") == "CC" + "TDDDC" + "T" + "D" * 97 + "CZ"
    assert len(engine.given) == 1


def test_errors_before_the_execution_are_free(engine: Counting, client: RawClient) -> None:
    replies = client.ask(parse("SELECT nothing FROM people"), bind(), execute(), SYNC)
    assert tags(replies) == "EZ"
    assert replies[0].fields["C"] == "42703"
    replies = client.ask(parse(ABOVE), bind("", "", [b"a word"]), execute(), SYNC)
    assert tags(replies) == "1EZ"
    assert replies[1].fields["C"] == "22P02"
    assert engine.given == []
    assert engine.spent == 0


def test_the_rest_of_a_text_is_not_run_after_an_error(engine: Counting, client: RawClient) -> None:
    replies = client.ask(query(AFTER_AN_ERROR))
    assert tags(replies) == "EZ"
    assert engine.given == []


def test_what_fails_in_a_transaction_is_not_undone_at_the_cost_of_the_budget(
    engine: Counting, client: RawClient
) -> None:
    assert tags(client.ask(query("BEGIN"))) == "CZ"
    client.ask(query(BY_AGE))
    failed = client.ask(query("SELECT nothing FROM people"))
    assert failed[-1].body == b"E"
    refused = client.ask(query(BY_AGE))
    assert refused[0].fields["C"] == "25P02"
    assert client.ask(query("ROLLBACK"))[-1].body == b"I"
    before = engine.spent
    assert before > 0, "what was measured stays known, and paid"
    assert tags(client.ask(query(BY_AGE)))[-2:] == "CZ"
    assert engine.spent == before


def test_messages_behind_an_error_are_passed_over(engine: Counting, client: RawClient) -> None:
    replies = client.ask(
        describe("S", "nobody"), parse(BY_AGE), bind(), execute(), framed("H"), SYNC
    )
    assert tags(replies) == "EZ"
    assert replies[0].fields["C"] == "26000"
    assert engine.given == []


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ("", [b"Oslo\t", b"\\N\t"]),
        (" (FORMAT csv, HEADER)", [b"city,n\n", b"Oslo,", b","]),
    ],
)
def test_an_answer_is_copied(
    engine: Counting, client: RawClient, options: str, lines: list[bytes]
) -> None:
    by_city = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
    replies = client.ask(query(f"COPY ({by_city}) TO STDOUT{options}"))
    pieces = [reply.body for reply in replies if reply.tag == "d"]
    assert tags(replies) == "H" + "d" * len(pieces) + "cCZ"
    assert all(any(piece.startswith(line) for piece in pieces) for line in lines)
    assert replies[-2].body == b"COPY 4\0"
    assert len(engine.given) == 1
    assert tags(client.ask(query("COPY people TO STDOUT"))) == "EZ"


def test_settings_that_clients_want_to_know_of_are_reported(client: RawClient) -> None:
    replies = client.ask(query("SET timezone = 'europe/oslo'"))
    assert tags(replies) == "SCZ"
    assert replies[0].body == b"TimeZone\0Europe/Oslo\0"
    assert client.ask(query("SHOW timezone"))[1].values == [b"Europe/Oslo"]
    assert tags(client.ask(query("RESET ALL"))) == "SCZ"


def test_prepared_statements_of_sql(engine: Counting, client: RawClient) -> None:
    client.ask(query("PREPARE above (int) AS SELECT COUNT(*) AS n FROM people WHERE age > $1"))
    assert engine.given == []
    counts = Counter(tuple(client.ask(query("EXECUTE above (30)"))[1].values) for _ in range(3))
    assert list(counts.values()) == [3]
    assert tags(client.ask(query("DEALLOCATE above"))) == "CZ"
    assert client.ask(query("EXECUTE above (30)"))[0].fields["C"] == "26000"


def test_a_text_of_no_statement_is_answered(client: RawClient) -> None:
    assert tags(client.ask(query(" ; -- nothing"))) == "IZ"
    assert tags(client.ask(parse(""), bind(), describe("P"), execute(), SYNC)) == "12nIZ"


def test_what_would_write_is_refused_as_a_read_only_server_does(client: RawClient) -> None:
    for sql, sqlstate in (
        ("INSERT INTO people VALUES (1)", "25006"),
        ("CREATE TABLE t (a int)", "25006"),
        ("LISTEN a", "0A000"),
        ("SELECT FROM WHERE", "42601"),
        ("SELECT COUNT(*) FROM nobody", "42P01"),
        ("SET tacit.nothing = 1", "42704"),
        ("SELECT * FROM people", "0A000"),
    ):
        (error, _) = client.ask(query(sql))
        assert error.fields["C"] == sqlstate, sql
        assert error.fields["H"], sql


def test_a_preview_says_whose_rows_it_shows(tmp_path: Path) -> None:
    with (
        synthetic_engine(tmp_path, previews=("people",)) as engine,
        postgres_serving(engine) as address,
        raw_client(address) as client,
    ):
        client.log_in()
        client.ask(query("CREATE SYNTHETIC TABLE s FROM people WITH (epsilon => 1, rows => 10)"))
        replies = client.ask(query("SELECT * FROM people LIMIT 3"))
        assert tags(replies) == "TNDDDCZ"
        assert "synthetic table s" in replies[1].fields["M"]
