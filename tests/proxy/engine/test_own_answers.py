"""Tables that answer by themselves: free, with their own intervals, beside private tables."""

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accountant.ledger.credentials import Role
from accountant.ledger.limits import Payer
from cube.axis import CategoryAxis, IntegerAxis
from cube.refusals import (
    BudgetExhausted,
    InvalidRequest,
    PrivateRows,
    UnknownName,
    UnsupportedSql,
)
from cube.schema import Schema
from inference.remap import CountPrior, PowerLoss
from planner.belief import Belief
from proxy.api.marginals import MarginalSet, MarginalsRequest
from proxy.api.receipts import RECEIPT_KEY, notice_lines
from proxy.api.requests import LOCAL, BatchRequest, Caller, QueryRequest, QueryResult
from proxy.engine.engine import Engine
from proxy.feature import Feature
from proxy.wire.tacit.messages import receipt_message
from tacit_client.receipts import receipt_of
from tests.support.own_tables import CountedTable
from tests.support.worlds import SCHEMA as PEOPLE
from tests.support.worlds import people_served, random_rows

SURVEY = Schema(
    table="survey",
    axes=(
        CategoryAxis(name="city", values=("Oslo", "Paris")),
        IntegerAxis(name="grade", low=1, high=3),
        CategoryAxis(name="team", values=("red", "blue")),
    ),
    n_records_max=1000,
)
COUNTS = np.array([[10.0, 20.0, 30.0], [100.0, 200.0, 300.0]])
DEVIATION = 4.0
HALF_WIDTH = 1.9599639845400545 * DEVIATION
AGREEING = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => 'exact') "
    "city, COUNT(*) AS n FROM survey GROUP BY ROLLUP (city)"
)
BY_CITY = "SELECT city, COUNT(*) AS n FROM survey GROUP BY city"


@pytest.fixture
def survey() -> CountedTable:
    return CountedTable(SURVEY, ("city", "grade"), COUNTS, DEVIATION)


@pytest.fixture
def engine(survey: CountedTable) -> Engine:
    return Engine({}, features=[Feature({"survey": survey})])


@pytest.fixture
def both(tmp_path: Path, survey: CountedTable) -> Iterator[Engine]:
    with people_served(tmp_path, random_rows(500), budget=Fraction(1)) as people:
        yield Engine({PEOPLE.table: people}, features=[Feature({"survey": survey})])


def ask(engine: Engine, sql: str, caller: Caller = LOCAL) -> QueryResult:
    return engine.answer(QueryRequest(sql=sql, caller=caller))


def rows(engine: Engine, sql: str) -> list[dict[str, Any]]:
    return list(ask(engine, sql).data.to_pylist())


def test_counts_have_the_intervals_of_their_law_and_cost_nothing(engine: Engine) -> None:
    result = ask(engine, BY_CITY)
    assert result.data.to_pylist() == [{"city": "Oslo", "n": 60.0}, {"city": "Paris", "n": 600.0}]
    receipt = result.receipt
    assert receipt is not None
    assert (receipt.table, receipt.epsilon_spent) == ("survey", Fraction(0))
    assert receipt.budget is None
    (column,) = receipt.columns
    assert column.source == "counted"
    assert column.low == pytest.approx((60 - HALF_WIDTH, 600 - HALF_WIDTH))
    assert column.high == pytest.approx((60 + HALF_WIDTH, 600 + HALF_WIDTH))
    assert receipt.notes == ("Counted by hand.",)


def test_conditions_sums_shares_and_averages_are_asked_in_the_same_sql(engine: Engine) -> None:
    (found,) = rows(
        engine,
        "SELECT COUNT(*) AS n, SUM(grade) AS s, AVG(grade) AS a FROM survey WHERE city = 'Paris'",
    )
    assert found == pytest.approx({"n": 600.0, "s": 1400.0, "a": 1400 / 600})
    shares = rows(
        engine,
        "SELECT city, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM survey) AS share "
        "FROM survey GROUP BY city ORDER BY share DESC",
    )
    assert [one["share"] for one in shares] == pytest.approx([600 / 660, 60 / 660])
    assert rows(engine, BY_CITY + " HAVING COUNT(*) > 100") == [{"city": "Paris", "n": 600.0}]


def test_an_interval_of_a_formula_is_its_range_on_a_box(engine: Engine) -> None:
    result = ask(engine, "SELECT AVG(grade) AS a FROM survey WHERE city = 'Paris'")
    assert result.receipt is not None
    (column,) = result.receipt.columns
    each = 2.241402727604947 * DEVIATION  # at 1 - 0.05 / 2
    # What is summed are distances from 2, the middle.
    ends = 2 + (200 - each) / (600 + each), 2 + (200 + each) / (600 - each)
    assert (column.low[0], column.high[0]) == pytest.approx(ends, rel=1e-4)


def test_columns_say_the_interval_and_the_source(engine: Engine) -> None:
    (found,) = rows(
        engine,
        "SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low, DP_SOURCE(n) AS source, "
        "DP_COST(n) AS cost FROM survey WHERE grade = 3",
    )
    assert found["low"] == pytest.approx(330 - HALF_WIDTH)
    assert (found["source"], found["cost"]) == ("counted", 0.0)


@pytest.mark.parametrize("target", ["half_width => 2", "relative => 0.01"])
def test_a_target_that_is_not_met_is_answered_with_a_note(engine: Engine, target: str) -> None:
    result = ask(
        engine,
        BY_CITY.replace("SELECT", f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({target})"),
    )
    assert result.receipt is not None
    (_, note) = result.receipt.notes
    assert note.startswith("n is known less well than was asked for: to within 7.84.")


def test_a_target_that_is_met_has_no_note(engine: Engine) -> None:
    wide = BY_CITY.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 8)")
    result = ask(engine, wide)
    assert result.receipt is not None
    assert result.receipt.notes == ("Counted by hand.",)


def test_explain_says_free_and_how_wide_and_does_not_ask(
    engine: Engine, survey: CountedTable
) -> None:
    found = engine.explain(QueryRequest(sql=f"EXPLAIN PRIVACY {BY_CITY}"))
    (row,) = found.data.to_pylist()
    assert found.epsilon == 0
    assert found.budget is None
    assert (row["source"], row["candidate"]) == ("counted", None)
    assert row["half_width_promised"] == pytest.approx(HALF_WIDTH)
    assert (row["epsilon"], row["epsilon_left_after"], row["fits_budget"]) == (0.0, None, True)
    shown = ask(engine, f"EXPLAIN (FORMAT TEXT) {BY_CITY}").data.to_pylist()
    assert shown[0] == {"QUERY PLAN": "Answer  (epsilon=0)"}
    assert survey.n_answered == 0


def test_what_is_free_is_told_again_until_the_table_stands_elsewhere(
    engine: Engine, survey: CountedTable
) -> None:
    first = ask(engine, BY_CITY)
    assert ask(engine, BY_CITY) is first
    assert survey.n_answered == 1
    survey.position = (1, "")
    assert ask(engine, BY_CITY) is not first
    assert survey.n_answered == 2


@pytest.mark.parametrize(
    ("sql", "refusal"),
    [
        ("SELECT team, COUNT(*) AS n FROM survey GROUP BY team", UnsupportedSql),
        ("SELECT * FROM survey", PrivateRows),
        (AGREEING, UnsupportedSql),
        ("SELECT DP_CHI2_TEST(city, grade) FROM survey", UnsupportedSql),
    ],
)
def test_what_a_table_cannot_answer_is_refused(
    engine: Engine, sql: str, refusal: type[Exception]
) -> None:
    with pytest.raises(refusal):
        ask(engine, sql)
    with pytest.raises(refusal):
        engine.explain(QueryRequest(sql=f"EXPLAIN PRIVACY {sql}"))


def test_nothing_of_it_is_bought_or_reported(engine: Engine) -> None:
    with pytest.raises(InvalidRequest, match="survey is counted"):
        engine.plan_batch(BatchRequest(sql=BY_CITY))
    belief = Belief(CountPrior.of_weights(dict.fromkeys(range(11), 1)), PowerLoss(1))
    with pytest.raises(InvalidRequest, match="survey is counted"):
        engine.best_report(QueryRequest(sql="SELECT COUNT(*) AS n FROM survey"), belief)


def test_a_statement_may_ask_a_private_table_too(both: Engine) -> None:
    sql = (
        "SELECT s.city, s.n, s.source AS own, p.n AS people, p.source AS private FROM "
        "(SELECT city, COUNT(*) AS n, DP_SOURCE(n) AS source FROM survey GROUP BY city) AS s JOIN "
        "(SELECT city, COUNT(*) AS n, DP_SOURCE(n) AS source FROM people GROUP BY city) AS p "
        "ON s.city = p.city"
    )
    for is_paid in (True, False, False):
        result = ask(both, sql)
        receipt = result.receipt
        assert receipt is not None
        assert receipt.budget is not None
        assert receipt.table == receipt.budget.table == "people"
        assert bool(receipt.epsilon_spent) is is_paid
        found = {(one["own"], one["private"]) for one in result.data.to_pylist()}
        assert found == {("counted", "measured" if is_paid else "history")}


def test_a_private_table_is_not_charged_where_the_other_refuses(both: Engine) -> None:
    before = both.budgets(LOCAL)
    people, red = (
        "(SELECT COUNT(*) FROM people)",
        "(SELECT COUNT(*) FROM survey WHERE team = 'red')",
    )
    for sql in (f"SELECT {people} AS p, {red} AS s", f"SELECT {red} AS s, {people} AS p"):
        with pytest.raises(UnsupportedSql, match="Not counted"):
            ask(both, sql)
    assert both.budgets(LOCAL) == before


def test_another_is_not_asked_where_a_private_table_refuses(
    both: Engine, survey: CountedTable
) -> None:
    sql = (
        "SELECT (SELECT COUNT(*) FROM survey) AS s, (SELECT WITH DIFFERENTIAL_PRIVACY "
        "OPTIONS(half_width => 0.01) COUNT(*) FROM people) AS p"
    )
    with pytest.raises(BudgetExhausted):
        ask(both, sql)
    assert survey.n_answered == 0


def test_who_has_no_grant_does_not_know_of_it(both: Engine) -> None:
    ann = Caller(Payer("ann"), Role.ANALYST, ("people",))
    with pytest.raises(UnknownName):
        ask(both, BY_CITY, ann)
    assert [info.schema.table for info in both.tables(ann)] == ["people"]
    assert [info.schema.table for info in both.tables(LOCAL)] == ["people", "survey"]
    assert [budget.table for budget in both.budgets(LOCAL)] == ["people"]


def test_tables_come_and_go_while_the_engine_serves(survey: CountedTable) -> None:
    own: dict[str, CountedTable] = {}
    engine = Engine({}, features=[Feature(own)])
    with pytest.raises(UnknownName):
        ask(engine, BY_CITY)
    own["survey"] = survey
    assert len(rows(engine, BY_CITY)) == 2
    later = CountedTable(SURVEY, ("city", "grade"), 2 * COUNTS, DEVIATION)
    later.position = (1, "")
    own["survey"] = later  # of the same edition
    assert [one["n"] for one in rows(engine, BY_CITY)] == [120.0, 1200.0]
    wider = Schema(
        table="survey",
        axes=(CategoryAxis(name="city", values=("Oslo", "Paris", "Rome")),),
        n_records_max=1000,
    )
    own["survey"] = CountedTable(wider, ("city",), np.arange(3.0), DEVIATION)
    own["survey"].edition = "2"
    assert len(rows(engine, BY_CITY)) == 3
    del own["survey"]
    with pytest.raises(UnknownName):
        ask(engine, BY_CITY)


def test_it_is_listed_as_a_table(engine: Engine) -> None:
    found = rows(
        engine,
        "SELECT c.relname, obj_description(c.oid) AS about FROM pg_catalog.pg_class AS c "
        "WHERE c.relname = 'survey'",
    )
    assert found == [{"relname": "survey", "about": "Counted by hand."}]


def test_receipts_without_a_budget_go_over_every_wire(engine: Engine) -> None:
    result = ask(engine, BY_CITY)
    receipt = result.receipt
    assert receipt is not None
    assert "epsilon_left" not in json.loads(result.data.schema.metadata[RECEIPT_KEY])
    received = receipt_of(result.data)
    assert received is not None
    assert received.epsilon_left is None
    assert not receipt_message(receipt).HasField("budget")
    assert notice_lines(receipt)[0] == "survey: free."


def test_no_synthetic_table_and_no_marginals_are_made_of_it(both: Engine) -> None:
    with pytest.raises(InvalidRequest, match="survey answers by itself"):
        ask(both, "CREATE SYNTHETIC TABLE s FROM Survey WITH (epsilon => 0)")
    asked = MarginalsRequest(table="survey", sets=(MarginalSet(("city",)),))
    with pytest.raises(InvalidRequest, match="survey is counted"):
        list(both.marginals(asked, LOCAL))
    ann = Caller(Payer("ann"), Role.ANALYST, ("people",))  # to whom it does not exist
    with pytest.raises(UnknownName):
        ask(both, "CREATE SYNTHETIC TABLE s FROM survey WITH (epsilon => 0)", ann)
    with pytest.raises(UnknownName):
        list(both.marginals(asked, ann))
