"""Every statement that is answered, held against DuckDB on the same rows in plain sight.

Without noise, the answer is DuckDB's. What is free, also with noise, is test_free.py's; how often
intervals hold the truth is test_coverage.py's.
"""

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from proxy.api.requests import QueryRequest
from proxy.engine.engine import Engine
from tests.sql import world
from tests.sql.cases import Case, cases, parameters, request, spent
from tests.sql.comparing import Row, oracle_rows, rows_of, same_rows, same_sequence
from tests.support.fakes import KnownTable, NoNoise

ANSWERED = cases("answered")
COMPARED = [case for case in ANSWERED if case.comparison != "none"]


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    return world.database(world.positions())


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    source = KnownTable(world.SCHEMA, world.positions())
    with world.patients_engine(tmp_path_factory.mktemp("exact"), source, NoNoise()) as engine:
        yield engine


def agrees(case: Case, data: pa.Table, expected: list[Row]) -> bool:
    got = rows_of(data, case.ignored)
    return (
        same_sequence(got, expected) if case.comparison == "ordered" else same_rows(got, expected)
    )


def test_there_are_cases_and_a_known_way_to_compare_each() -> None:
    assert len(ANSWERED) >= 120
    assert {case.comparison for case in ANSWERED} <= {"rows", "ordered", "none"}
    assert all(
        len(case.headers["compare"].split()) > 1 for case in ANSWERED if case not in COMPARED
    )


@parameters(COMPARED)
def test_duckdb_understands_what_it_is_asked(case: Case, oracle: duckdb.DuckDBPyConnection) -> None:
    assert oracle.execute(case.oracle_sql).description


@parameters(COMPARED)
def test_without_noise_the_answer_is_that_of_duckdb(
    case: Case, exact: Engine, oracle: duckdb.DuckDBPyConnection
) -> None:
    expected = oracle_rows(oracle, case.oracle_sql, case.ignored)
    release = exact.answer(request(case))
    assert agrees(case, release.data, expected), (rows_of(release.data)[:20], expected[:20])


@parameters([case for case in ANSWERED if case.comparison == "none"])
def test_what_cannot_be_compared_has_the_shape_that_is_promised(case: Case, exact: Engine) -> None:
    data = exact.answer(request(case)).data
    assert data.num_columns > 0
    if "n_rows" in case.headers:
        assert data.num_rows == int(case.headers["n_rows"])


@parameters(ANSWERED)
def test_the_schema_is_known_before_the_answer_and_costs_nothing(case: Case, exact: Engine) -> None:
    before = spent(exact)
    promised = exact.result_schema(request(case))
    assert spent(exact) == before
    assert promised.equals(exact.answer(request(case)).data.schema, check_metadata=False)


def test_the_receipt_names_the_moment_of_a_statement_that_reads_the_clock(exact: Engine) -> None:
    read, unread = (
        exact.answer(QueryRequest(sql=f"SELECT COUNT(*) FROM patients WHERE admitted < {day}"))  # noqa: S608 - the test's
        for day in ("CURRENT_DATE", "DATE '2024-01-01'")
    )
    assert read.receipt is not None
    assert unread.receipt is not None
    assert any(note.startswith("CURRENT_DATE and NOW() were") for note in read.receipt.notes)
    assert not unread.receipt.notes


@pytest.mark.parametrize(
    ("expected", "same"),
    [
        ([("a", 1.0), ("b", 2.0)], True),
        ([("b", 2.0), ("a", 1.0)], True),
        ([("a", 1.0), ("b", 2.1)], False),
        ([("a", 1.0)], False),
        ([("a", None), ("b", 2.0)], False),
        ([("a", 1.0), ("b", 2.0), ("b", 2.0)], False),
        ([("a", True), ("b", 2.0)], False),
    ],
)
def test_the_comparison_has_teeth(expected: list[Row], same: bool) -> None:
    assert same_rows([("a", 1.0), ("b", 2.0 + 1e-9)], expected) == same
    assert not same_sequence([("a", 1.0), ("b", 2.0)], [("b", 2.0), ("a", 1.0)])
