"""`tacit.v1` through its own stub: answers, receipts, explanations, tables, budgets, targets."""

from collections.abc import Iterator
from fractions import Fraction

import grpc
import pyarrow as pa
import pytest

from cube.axis import CategoryAxis
from planner.workload import RequestedTarget
from proxy.api.columns import describe_levels
from proxy.api.requests import ColumnReceipt
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.shared.refusal_details import EPSILON_KEY
from tests.support.engine_fake import ANSWERS, COUNT_ALL, COUNT_BY_SEX, EXPLAIN_ALL, CannedEngine
from tests.support.serving import channel_to


@pytest.fixture
def engine() -> CannedEngine:
    return CannedEngine()


@pytest.fixture
def stub(engine: CannedEngine) -> Iterator[TacitStub]:
    with channel_to(engine) as channel:
        yield TacitStub(channel)


def ask(stub: TacitStub, sql: str) -> tuple[pa.Table, tacit_pb2.Receipt]:
    replies = list(stub.Query(tacit_pb2.QueryRequest(sql=sql)))
    table = pa.ipc.open_stream(b"".join(reply.ipc for reply in replies)).read_all()
    return table, replies[-1].receipt


def test_an_answer_is_one_arrow_stream_and_then_its_receipt(stub: TacitStub) -> None:
    table, receipt = ask(stub, COUNT_BY_SEX)
    assert table.to_pylist() == ANSWERS[COUNT_BY_SEX].to_pylist()
    assert receipt.table == "people"
    assert receipt.epsilon_spent == 0.25
    (column,) = receipt.columns
    assert (column.name, column.confidence, column.source) == ("n", 0.95, "measured")
    assert list(column.low) == [499.25, 729.5, 2.75]
    assert list(column.high) == [501.25, 731.5, 4.75]
    assert receipt.budget.epsilon_left == 9.75


def test_the_same_question_again_costs_nothing(stub: TacitStub) -> None:
    first, _ = ask(stub, COUNT_ALL)
    second, receipt = ask(stub, COUNT_ALL)
    assert first.equals(second)
    assert (receipt.epsilon_spent, receipt.columns[0].source) == (0.0, "history")


def test_what_a_call_spent_rides_in_its_trailing_metadata(stub: TacitStub) -> None:
    call = stub.Query(tacit_pb2.QueryRequest(sql=COUNT_ALL))
    list(call)
    assert dict(call.trailing_metadata())[EPSILON_KEY] == "0.25"


def test_an_explanation_sent_as_sql_has_no_receipt(stub: TacitStub) -> None:
    replies = list(stub.Query(tacit_pb2.QueryRequest(sql=EXPLAIN_ALL)))
    assert not any(reply.HasField("receipt") for reply in replies)


def test_explaining_charges_nothing(stub: TacitStub, engine: CannedEngine) -> None:
    reply = stub.Explain(tacit_pb2.ExplainRequest(sql=COUNT_ALL))
    assert pa.ipc.open_stream(reply.ipc).read_all().column_names == ["what", "epsilon"]
    assert reply.epsilon == 0.25
    assert reply.budget.epsilon_spent == 0
    assert engine.calls == {"explain": 1}


def test_tables_are_listed_with_their_public_levels(stub: TacitStub) -> None:
    people = stub.ListTables(tacit_pb2.ListTablesRequest()).tables[0]
    assert (people.name, people.default_half_width, people.default_confidence) == (
        "people",
        100.0,
        0.95,
    )
    assert [
        (c.name, c.sql_type, c.kind, c.nullable, c.n_levels, c.levels) for c in people.columns
    ] == [
        ("sex", "VARCHAR", "category", True, 4, "Female, Male, other: unknown, NULL"),
        ("age", "BIGINT", "integer", False, 74, "17 .. 90"),
        ("hours", "DOUBLE", "numeric", False, 3, "0.0, 20.0, 40.0, 99.0 (edges)"),
        ("married", "BOOLEAN", "boolean", False, 2, "False, True"),
        ("joined", "DATE", "date", False, 366, "2020-01-01 .. 2020-12-31"),
    ]


def test_a_long_list_of_levels_is_cut() -> None:
    axis = CategoryAxis(name="letter", values=tuple("abcdefghijkl"))
    assert describe_levels(axis) == "a, b, c, d, e, f, g, h, ... (4 more)"


def test_the_budget_of_one_table_or_of_all(stub: TacitStub) -> None:
    ask(stub, COUNT_ALL)
    everything = stub.GetBudget(tacit_pb2.GetBudgetRequest()).budgets
    (people,) = stub.GetBudget(tacit_pb2.GetBudgetRequest(table="people")).budgets
    assert [budget.table for budget in everything] == ["people", "ad_hoc"]
    assert people == everything[0]
    assert (people.epsilon_limit, people.epsilon_spent, people.epsilon_left) == (10, 0.25, 9.75)
    assert people.n_measurements == 1


def test_the_budget_of_an_unknown_table_is_not_found(stub: TacitStub) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        stub.GetBudget(tacit_pb2.GetBudgetRequest(table="nobody\n"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert caught.value.details() == (
        "[unknown_name] There is no table 'nobody\\n'. Tables here: people, ad_hoc."
    )


def test_a_target_arrives_exactly(stub: TacitStub, engine: CannedEngine) -> None:
    target = tacit_pb2.Target(half_width=50, epsilon="0.1")
    list(stub.Query(tacit_pb2.QueryRequest(sql=COUNT_ALL, target=target)))
    assert engine.requests[0].target == RequestedTarget(
        half_width=50.0, epsilon_cap=Fraction(1, 10)
    )
    list(stub.Query(tacit_pb2.QueryRequest(sql=COUNT_ALL)))
    assert engine.requests[1].target == RequestedTarget()


@pytest.mark.parametrize(
    "target",
    [
        {"half_width": 0.0},
        {"half_width": -1.0},
        {"half_width": float("nan")},
        {"half_width": float("inf")},
        {"confidence": 0.0},
        {"confidence": 1.0},
        {"confidence": float("nan")},
        {"half_width": 1.0, "confidence": 2.0},
        {"epsilon": ""},
        {"epsilon": "-1"},
        {"epsilon": "nan"},
        {"epsilon": "1/3"},
        {"epsilon": "1e999999999"},
        {"epsilon": "\u0661"},
        {"epsilon": "0." + "1" * 100_000},
    ],
    ids=lambda target: str(target)[:40],
)
def test_a_target_out_of_range_is_refused_before_the_engine_sees_it(
    stub: TacitStub, engine: CannedEngine, target: dict[str, float | str]
) -> None:
    message = tacit_pb2.Target(**target)  # type: ignore[arg-type] # one field or another
    for call in (
        lambda: list(stub.Query(tacit_pb2.QueryRequest(sql=COUNT_ALL, target=message))),
        lambda: stub.Explain(tacit_pb2.ExplainRequest(sql=COUNT_ALL, target=message)),
    ):
        with pytest.raises(grpc.RpcError, match=r"\[invalid_target\]") as caught:
            call()
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert not engine.calls


def test_a_column_receipt_has_an_interval_for_each_row() -> None:
    with pytest.raises(ValueError, match="1 low ends for 0 high ends"):
        ColumnReceipt("n", 0.95, Fraction(0), "public", (1.0,), ())
