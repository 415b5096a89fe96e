"""The real ADBC Flight SQL driver against a real server: what a database client sees."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from adbc_driver_flightsql import dbapi
from adbc_driver_manager import InternalError, NotSupportedError, OperationalError, ProgrammingError
from google.protobuf.any_pb2 import Any as AnyMessage

from cube.refusals import BudgetExhausted, LimitReached
from proxy.protocol.tacit_pb2 import RefusalDetail
from proxy.shared.refusal_details import DETAILS_KEY, refusal_detail
from tests.support.engine_fake import (
    ANSWERS,
    COUNT_ALL,
    COUNT_BY_SEX,
    EXPLAIN_ALL,
    NO_GROUPS,
    BrokenEngine,
    CannedEngine,
)
from tests.support.refusals import SHORTFALL
from tests.support.serving import serving


@pytest.fixture
def engine() -> CannedEngine:
    return CannedEngine()


@pytest.fixture
def connection(engine: CannedEngine) -> Iterator[Any]:
    with serving(engine) as address, dbapi.connect(f"grpc://{address}", autocommit=True) as opened:
        yield opened


@pytest.fixture
def cursor(connection: Any) -> Iterator[Any]:
    with connection.cursor() as opened:
        yield opened


def test_rows_come_as_python_values(cursor: Any) -> None:
    cursor.execute(COUNT_BY_SEX)
    assert [column[0] for column in cursor.description] == ["sex", "n"]
    assert cursor.fetchone() == ("Female", 500.25)
    assert cursor.fetchall() == [("Male", 730.5), (None, 3.75)]


def test_rows_come_as_arrow_with_the_receipt_in_the_metadata(cursor: Any) -> None:
    cursor.execute(COUNT_BY_SEX)
    table = cursor.fetch_arrow_table()
    assert table.to_pylist() == ANSWERS[COUNT_BY_SEX].to_pylist()
    assert table.schema.metadata == {b"tacit.receipt": b'{"epsilon_spent": 0.25}'}


def test_a_result_without_rows_keeps_its_columns(cursor: Any) -> None:
    cursor.execute(NO_GROUPS)
    assert cursor.fetch_arrow_table().schema.names == ["sex", "n"]


def test_executing_asks_the_engine_once(cursor: Any, engine: CannedEngine) -> None:
    cursor.execute(COUNT_ALL)
    cursor.fetchall()
    assert engine.calls == {"result_schema": 1, "answer": 1}


def test_asking_again_is_free_and_says_the_same(cursor: Any, engine: CannedEngine) -> None:
    answers = []
    for _ in range(3):
        cursor.execute(COUNT_ALL)
        answers.append(cursor.fetchall())
    assert answers == [[(1234.5,)]] * 3
    assert engine.spent == 0.25


def test_learning_the_columns_is_free(cursor: Any, engine: CannedEngine) -> None:
    assert cursor.adbc_execute_schema(COUNT_ALL).equals(ANSWERS[COUNT_ALL].schema)
    cursor.adbc_prepare(COUNT_ALL)
    assert engine.calls.keys() == {"result_schema"}


def test_an_explanation_is_a_table_and_free(cursor: Any, engine: CannedEngine) -> None:
    cursor.execute(EXPLAIN_ALL)
    assert cursor.fetchall() == [("COUNT(*)", 0.25)]
    assert engine.spent == 0


def test_the_server_introduces_itself(connection: Any) -> None:
    info = connection.adbc_get_info()
    assert info["vendor_name"] == "Tacit"
    assert info["vendor_arrow_version"] == pa.__version__


@pytest.mark.parametrize("depth", ["catalogs", "db_schemas", "tables", "columns", "all"])
def test_the_catalog_can_be_browsed_to_any_depth(
    connection: Any, engine: CannedEngine, depth: str
) -> None:
    (catalog,) = connection.adbc_get_objects(depth=depth).read_all().to_pylist()
    assert catalog["catalog_name"] == "tacit"
    if depth == "catalogs":
        return
    views, schema = catalog["catalog_db_schemas"]
    assert (views["db_schema_name"], schema["db_schema_name"]) == ("data_privacy", "public")
    if depth == "db_schemas":
        return
    tables = schema["db_schema_tables"]
    assert [(table["table_name"], table["table_type"]) for table in tables] == [
        ("ad_hoc", "TABLE"),
        ("people", "TABLE"),
    ]
    assert {(view["table_name"], view["table_type"]) for view in views["db_schema_tables"]} >= {
        ("budgets", "VIEW"),
        ("history", "VIEW"),
    }
    if depth in {"columns", "all"}:
        columns = [(c["column_name"], c["xdbc_type_name"]) for c in tables[1]["table_columns"]]
        assert columns == [
            ("sex", "VARCHAR"),
            ("age", "BIGINT"),
            ("hours", "DOUBLE"),
            ("married", "BOOLEAN"),
            ("joined", "DATE"),
        ]
    assert not engine.calls


def test_the_catalog_can_be_filtered(connection: Any) -> None:
    found = connection.adbc_get_objects(depth="tables", table_name_filter="peo%").read_all()
    schemas = found.to_pylist()[0]["catalog_db_schemas"]
    names = [table["table_name"] for one in schemas for table in one["db_schema_tables"] or ()]
    assert names == ["people"]


def test_a_table_shows_its_columns_and_an_unknown_one_does_not(connection: Any) -> None:
    assert connection.adbc_get_table_schema("people").names == [
        "sex",
        "age",
        "hours",
        "married",
        "joined",
    ]
    assert connection.adbc_get_table_types() == ["TABLE", "VIEW"]
    with pytest.raises((OperationalError, ProgrammingError), match="NOT_FOUND"):
        connection.adbc_get_table_schema("nobody")


def test_a_refusal_is_a_programming_error_with_our_words(cursor: Any) -> None:
    with pytest.raises(ProgrammingError) as caught:
        cursor.execute("SELECT nonsense")
    assert "[sql_syntax] 'SELECT nonsense' is not on the list. Ask what is on it." in str(
        caught.value
    )


def test_writing_is_not_supported(cursor: Any, engine: CannedEngine) -> None:
    with pytest.raises(NotSupportedError, match="An upload cannot create"):
        cursor.adbc_ingest("people", pa.table({"a": [1]}))
    with pytest.raises(NotSupportedError, match="only answers SELECT"):
        cursor.executemany(COUNT_ALL, [(1,), (2,)])
    assert engine.calls.keys() <= {"result_schema"}


def test_an_exhausted_budget_is_told_as_such() -> None:
    engine = BrokenEngine(BudgetExhausted(SHORTFALL))
    with (
        serving(engine) as address,
        dbapi.connect(f"grpc://{address}", autocommit=True) as connection,
        connection.cursor() as cursor,
        pytest.raises(
            OperationalError, match=r"\[budget_exhausted\] This costs epsilon 1\.5, and people has"
        ),
    ):
        cursor.execute(COUNT_ALL)


def test_a_refusal_brings_its_details_for_programs() -> None:
    refusal = LimitReached(SHORTFALL)
    with (
        serving(BrokenEngine(refusal)) as address,
        dbapi.connect(f"grpc://{address}", autocommit=True) as connection,
        connection.cursor() as cursor,
        pytest.raises(dbapi.Error) as caught,
    ):
        cursor.execute(COUNT_ALL)
    # Names are bytes in this release of the driver, and text by its declaration.
    details: dict[Any, bytes] = dict(caught.value.details)
    assert details[b"tacit-code"] == b"limit_reached"
    found = RefusalDetail()
    assert AnyMessage.FromString(details[DETAILS_KEY.encode()]).Unpack(found)
    assert found == refusal_detail(refusal)


def test_a_crash_shows_an_incident_number_and_nothing_else() -> None:
    engine = BrokenEngine(RuntimeError("secret 12345"))
    with (
        serving(engine) as address,
        dbapi.connect(f"grpc://{address}", autocommit=True) as connection,
        connection.cursor() as cursor,
        pytest.raises(InternalError) as caught,
    ):
        cursor.execute(COUNT_ALL)
    told = f"{caught.value} {caught.value.details}"
    assert "incident" in told
    assert "12345" not in told
    assert "Traceback" not in told
