"""OPTIONS(fallback => 'model'): an answer from a model, where none can be paid for."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from cube.refusals import BudgetExhausted, CostAboveCap, InvalidTarget, Refused
from planner.workload import RequestedTarget
from proxy.api.requests import QueryRequest, QueryResult
from proxy.engine.engine import Engine
from tests.support.synthetic import asked, spent, synthetic_engine

OPTIONS = "WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 1, fallback => 'model')"
BY_CITY = f"SELECT {OPTIONS} city, COUNT(*) AS n FROM people GROUP BY city"  # noqa: S608 - fixed
MAKE = "CREATE SYNTHETIC TABLE s FROM people WITH (epsilon => 1, rows => 10)"
N_RECORDS = 2000


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """An engine with a synthetic table, and next to nothing of its budget left."""
    with synthetic_engine(tmp_path, budget=Fraction(101, 100)) as engine:
        asked(engine, MAKE)
        yield engine


def answer(engine: Engine, sql: str) -> QueryResult:
    return engine.answer(QueryRequest(sql=sql))


def test_what_cannot_be_paid_is_answered_from_the_newest_table(engine: Engine) -> None:
    before = spent(engine)
    with pytest.raises(BudgetExhausted):
        answer(engine, BY_CITY.replace(", fallback => 'model'", ""))
    release = answer(engine, BY_CITY)
    assert spent(engine) == before
    counts = {row["city"]: row["n"] for row in release.data.to_pylist()}
    assert counts.keys() == {"Oslo", "Paris", "Rome", None}
    # As many rows as there are, whatever number was asked for when the table was made.
    assert sum(counts.values()) == pytest.approx(N_RECORDS, abs=100)
    assert release.data.schema == engine.result_schema(QueryRequest(sql=BY_CITY))


def test_such_an_answer_is_marked_and_promises_nothing(engine: Engine) -> None:
    release = answer(engine, BY_CITY)
    assert release.receipt is not None
    (column,) = release.receipt.columns
    assert (column.name, column.source) == ("n", "model")
    assert set(column.low) == {float("-inf")}
    assert release.receipt.epsilon_spent == 0
    beside = ", DP_INTERVAL_LOW(n) AS low, DP_COST(n) AS cost, DP_SOURCE(n) AS source FROM"
    (row, *_) = asked(engine, BY_CITY.replace(" FROM", beside))
    assert (row["low"], row["cost"], row["source"]) == (None, 0, "model")


def test_what_history_knows_needs_no_model(engine: Engine) -> None:
    sql = BY_CITY.replace("half_width => 1,", "half_width => 500,")
    release = answer(engine, sql)
    assert release.receipt is not None
    assert release.receipt.columns[0].source == "history"


def test_a_cap_of_nothing_asks_the_history_or_the_model(engine: Engine) -> None:
    request = QueryRequest(sql=BY_CITY, target=RequestedTarget(epsilon_cap=Fraction(0)))
    release = engine.answer(request)
    assert release.receipt is not None
    assert release.receipt.columns[0].source == "model"
    with pytest.raises((CostAboveCap, BudgetExhausted)):
        engine.answer(replace(request, sql=BY_CITY.replace(", fallback => 'model'", "")))


@pytest.mark.parametrize(
    "select",
    [
        "AVG(age), 100.0 * SUM(visits) / COUNT(*) FROM people WHERE member",
        "MEDIAN(age) FROM people",
        "country, COUNT(*) FROM people JOIN cities USING (city) GROUP BY country",
        "COUNT(*) FILTER (WHERE age > 40) FROM people AS p HAVING COUNT(*) > 1",
        "city, n FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city) AS t ORDER BY n",
    ],
)
def test_statements_keep_their_columns_when_a_model_answers(engine: Engine, select: str) -> None:
    sql = f"SELECT {OPTIONS} {select}"
    release = answer(engine, sql)
    assert release.receipt is not None
    assert release.data.num_rows >= 1
    assert release.data.schema == engine.result_schema(QueryRequest(sql=sql))


def test_without_a_table_the_refusal_stands(engine: Engine) -> None:
    asked(engine, "DROP SYNTHETIC TABLE s")
    with pytest.raises(BudgetExhausted):
        answer(engine, BY_CITY)


def test_a_column_that_no_model_has_keeps_the_refusal(engine: Engine) -> None:
    sql = "CREATE OR REPLACE SYNTHETIC TABLE s FROM people WITH (columns => (age))"
    asked(engine, sql)
    with pytest.raises(BudgetExhausted):
        answer(engine, BY_CITY)


def test_there_is_one_thing_to_fall_back_on(engine: Engine) -> None:
    with pytest.raises(InvalidTarget, match="luck is not a fallback"):
        answer(engine, BY_CITY.replace("'model'", "'luck'"))


def test_of_several_private_tables_none_is_made_up(engine: Engine) -> None:
    sql = BY_CITY.replace("COUNT(*) AS n", "COUNT(*), (SELECT COUNT(*) FROM staff)")
    with pytest.raises(Refused):
        answer(engine, sql)
