"""Fallback on history: the best that is known where the budget is gone, and nothing is charged."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from accountant.ledger.credentials import Role
from accountant.ledger.limits import Payer
from cube.refusals import BudgetExhausted, CostAboveCap, InvalidTarget
from planner.measuring.candidates import Strategy
from planner.workload import Fallback, RequestedTarget
from proxy.api.requests import Caller, QueryRequest, QueryResult, Receipt
from proxy.config.sharing import Sharing
from proxy.engine.engine import Engine
from tests.support.fakes import NoNoise
from tests.support.worlds import people_engine, random_rows

ROWS = random_rows(2000)
N_OSLO = sum(row[1] == "Oslo" for row in ROWS)
FALLBACK = "WITH DIFFERENTIAL_PRIVACY OPTIONS(fallback => 'history', half_width => {})"
BY_CITY = f"SELECT {FALLBACK} city, COUNT(*) AS n FROM people GROUP BY city"  # noqa: S608 - fixed
NOTHING = "WITH DIFFERENTIAL_PRIVACY OPTIONS(fallback => 'history', epsilon => 0)"
ANN = Caller(Payer("ann"), Role.ANALYST, ("*",))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """Noise is off, so that estimates are exact; intervals are those of the noise that is paid."""
    with people_engine(
        tmp_path, ROWS, budget=Fraction(1), noise=NoNoise(), strategy=Strategy.QUERY
    ) as engine:
        yield engine


def answer(engine: Engine, sql: str, fallback: Fallback | None = None) -> QueryResult:
    return engine.answer(QueryRequest(sql=sql, target=RequestedTarget(fallback=fallback)))


def receipt_of(result: QueryResult) -> Receipt:
    assert result.receipt is not None
    return result.receipt


def spent(engine: Engine) -> Fraction:
    (budget,) = engine.budgets(ANN)
    return budget.spent


def test_what_can_be_paid_is_bought_to_its_target(engine: Engine) -> None:
    receipt = receipt_of(answer(engine, BY_CITY.format(20)))
    assert (receipt.columns[0].source, receipt.notes) == ("measured", ())
    assert 0 < spent(engine) == receipt.epsilon_spent


def test_what_cannot_is_the_best_that_is_known_with_its_own_interval(engine: Engine) -> None:
    known = receipt_of(answer(engine, BY_CITY.format(20))).columns[0]
    before = spent(engine)
    with pytest.raises(BudgetExhausted):
        answer(engine, BY_CITY.format(0.1).replace("fallback => 'history', ", ""))
    result = answer(engine, BY_CITY.format(0.1))
    receipt = receipt_of(result)
    assert spent(engine) == before
    (column,) = receipt.columns
    assert column.source == "history"
    assert receipt.epsilon_spent == column.epsilon_spent == 0
    assert (column.low, column.high) == (known.low, known.high)
    assert receipt.notes == (
        "people could not be paid to its target: these are the best estimates of the history.",
    )
    counts = {row["city"]: row["n"] for row in result.data.to_pylist()}
    assert counts["Oslo"] == N_OSLO


def test_rows_of_which_nothing_is_known_are_null(engine: Engine) -> None:
    answer(engine, "SELECT COUNT(*) FROM people WHERE city = 'Oslo'")
    beside = ", DP_INTERVAL_LOW(n) AS low, DP_STDERR(n) AS e, DP_SOURCE(n) AS source FROM"
    result = answer(engine, BY_CITY.format(0.1).replace(" FROM", beside))
    rows = {row["city"]: row for row in result.data.to_pylist()}
    assert rows["Oslo"]["n"] == N_OSLO
    assert rows["Oslo"]["low"] is not None
    assert rows["Rome"] == {"city": "Rome", "n": None, "low": None, "e": None, "source": "history"}
    result.data.validate(full=True)


def test_a_formula_is_null_where_a_part_of_it_is_unknown(engine: Engine) -> None:
    answer(engine, "SELECT city, AVG(age) AS a FROM people WHERE city = 'Oslo' GROUP BY city")
    sql = f"SELECT {NOTHING} city, AVG(age) AS a FROM people GROUP BY city"  # noqa: S608
    result = answer(engine, sql)
    rows = {row["city"]: row["a"] for row in result.data.to_pylist()}
    ages = [row[0] for row in ROWS if row[1] == "Oslo"]
    assert rows["Oslo"] == pytest.approx(sum(ages) / len(ages))
    assert rows["Paris"] is None
    (column,) = receipt_of(result).columns
    assert column.low[0] < sum(ages) / len(ages) < column.high[0]


def test_sql_on_such_answers_works(engine: Engine) -> None:
    answer(engine, BY_CITY.format(20))
    sql = BY_CITY.format(0.1) + " HAVING COUNT(*) > 600 ORDER BY n DESC LIMIT 1"
    assert answer(engine, sql).data.to_pylist() == [{"city": "Oslo", "n": N_OSLO}]


def test_quantiles_of_groups_that_are_unknown_are_null(engine: Engine) -> None:
    sql = f"SELECT {NOTHING} MEDIAN(visits) AS m FROM people"  # noqa: S608
    assert answer(engine, sql).data.to_pylist() == [{"m": None}]
    assert spent(engine) == 0


def test_a_cap_and_a_target_that_is_searched_fall_back_too(engine: Engine) -> None:
    cap = "WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon => 0{}) COUNT(*) AS n FROM people"
    with pytest.raises(CostAboveCap):
        answer(engine, "SELECT " + cap.format(""))
    known = answer(engine, "SELECT " + cap.format(", fallback => 'history'"))
    assert known.data.to_pylist() == [{"n": None}]
    searched = "WITH DIFFERENTIAL_PRIVACY OPTIONS(relative => 1e-7, at_least => 1) SUM(visits) AS n"
    result = answer(engine, f"SELECT {searched} FROM people", fallback=Fallback.HISTORY)  # noqa: S608
    assert receipt_of(result).epsilon_spent == spent(engine)


def test_a_connection_may_ask_for_it_and_a_statement_may_not(engine: Engine) -> None:
    sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 1e-3) COUNT(*) AS n FROM people"
    result = answer(engine, sql, fallback=Fallback.HISTORY)
    assert result.data.to_pylist() == [{"n": None}]
    with pytest.raises(BudgetExhausted):
        answer(
            engine,
            sql.replace("1e-3", "1e-3, fallback => 'none'"),
            fallback=Fallback.HISTORY,
        )


def test_an_unknown_fallback_is_refused(engine: Engine) -> None:
    with pytest.raises(InvalidTarget, match="guess is not a fallback"):
        answer(engine, BY_CITY.format(1).replace("'history'", "'guess'"))


def test_tests_and_counts_that_are_to_agree_are_refused_as_ever(engine: Engine) -> None:
    agree = "fallback => 'history', half_width => 0.01, consistency => 'exact'"
    sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({agree}) city, member, COUNT(*) FROM people"  # noqa: S608
    with pytest.raises(BudgetExhausted):
        answer(engine, f"{sql} GROUP BY CUBE(city, member)")


def test_who_may_not_see_the_history_is_refused_as_ever(tmp_path: Path) -> None:
    with people_engine(tmp_path, ROWS, sharing=Sharing.PRIVATE, noise=NoNoise()) as engine:
        answer(engine, BY_CITY.format(20))
        with pytest.raises(BudgetExhausted):
            engine.answer(QueryRequest(sql=BY_CITY.format(0.1), caller=ANN))
        owner = answer(engine, BY_CITY.format(0.1))
        assert owner.data.column("n").null_count == 0


def test_the_columns_are_those_that_were_promised(engine: Engine) -> None:
    promised = engine.result_schema(QueryRequest(sql=BY_CITY.format(0.1)))
    found = answer(engine, BY_CITY.format(0.1)).data
    assert [(one.name, one.type) for one in found.schema] == [
        (one.name, one.type) for one in promised
    ]
    assert found.column("n").null_count == found.num_rows
    assert pa.types.is_float64(found.schema.field("n").type)
