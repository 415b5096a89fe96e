"""Free answers given again as they are: equal to what is made anew, and gone once anything changed.

The oracle is the same engine without what it keeps: it makes the answer anew.
"""

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from accountant.ledger.credentials import EVERY_TABLE, Role
from accountant.ledger.entries import LimitSet
from accountant.ledger.limits import Limit, Payer, Subject, SubjectKind, Window
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, Caller, QueryRequest, QueryResult
from proxy.engine.engine import Engine
from proxy.engine.usage import ToldAgain
from proxy.tables.disclosure import shown_budget
from proxy.tables.private_table import ServedTable
from tests.support.worlds import SCHEMA, people_served, random_rows

COUNT = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
NARROWER = COUNT.replace(
    "SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 5, confidence => 0.95)"
)
STATEMENTS = (
    COUNT,
    "SELECT COUNT(*) AS n FROM people WHERE age > 30",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 20) AVG(age) AS a FROM people",
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING COUNT(*) > 10 ORDER BY n DESC",
)
ANN = Caller(Payer("ann"), Role.ANALYST, (EVERY_TABLE,))


@pytest.fixture
def table(tmp_path: Path) -> Iterator[ServedTable]:
    with people_served(tmp_path, random_rows(500), budget=Fraction(10)) as served:
        yield served


@pytest.fixture
def engine(table: ServedTable) -> Engine:
    return Engine({SCHEMA.table: table})


def ask(engine: Engine, sql: str, caller: Caller = LOCAL) -> QueryResult:
    return engine.answer(QueryRequest(sql=sql, caller=caller))


def anew(engine: Engine, sql: str, monkeypatch: pytest.MonkeyPatch) -> pa.Table:
    with monkeypatch.context() as context:
        context.setattr(engine, "_told", ToldAgain())
        return ask(engine, sql).data


@pytest.mark.parametrize("sql", STATEMENTS)
def test_what_is_told_again_is_what_would_be_made_anew(
    engine: Engine, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(engine, sql)
    free = ask(engine, sql)
    assert ask(engine, sql) is free
    made = anew(engine, sql, monkeypatch)
    assert made.equals(free.data)
    assert made.schema.metadata == free.data.schema.metadata  # the receipt, to the last digit


def test_what_was_paid_is_not_told_again(engine: Engine) -> None:
    paid = ask(engine, COUNT)
    assert paid.receipt is not None
    assert paid.receipt.epsilon_spent > 0
    free = ask(engine, COUNT)
    assert free is not paid
    assert free.receipt is not None
    assert free.receipt.epsilon_spent == 0


def test_any_purchase_ends_it(engine: Engine) -> None:
    ask(engine, COUNT)
    free = ask(engine, COUNT)
    ask(engine, NARROWER)
    after = ask(engine, COUNT)
    assert after is not free
    assert after.receipt is not None
    assert free.receipt is not None
    assert after.receipt.budget is not None
    assert free.receipt.budget is not None
    assert after.receipt.budget.spent > free.receipt.budget.spent
    assert after.receipt.columns[0].high != free.receipt.columns[0].high


def test_another_caller_or_setting_is_another_request(engine: Engine) -> None:
    ask(engine, COUNT)
    free = ask(engine, COUNT)
    assert ask(engine, COUNT, ANN) is not free
    wider = RequestedTarget(half_width=400.0)
    assert engine.answer(QueryRequest(sql=COUNT, target=wider)) is not free
    assert ask(engine, COUNT) is free


def test_a_limit_shows_at_once(engine: Engine, table: ServedTable) -> None:
    ask(engine, COUNT, ANN)
    ask(engine, COUNT, ANN)
    limit = Limit(Subject(SubjectKind.ANALYST, "ann"), Fraction(1, 4), Window.DAY)
    table.gate._ledger.append(SCHEMA.table, lambda _history: LimitSet(limit, "the owner"))
    receipt = ask(engine, COUNT, ANN).receipt
    assert receipt is not None
    assert receipt.budget is not None
    assert [one.limit for one in receipt.budget.limits] == [Fraction(1, 4)]


def test_what_is_left_is_asked_for_each_time(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(engine, COUNT)
    free = ask(engine, COUNT)

    def in_another_window(table: ServedTable, caller: Caller) -> object:
        return replace(shown_budget(table, caller), spent=Fraction(0))

    monkeypatch.setattr("proxy.engine.usage.shown_budget", in_another_window)
    assert ask(engine, COUNT) is not free


def test_another_moment_is_another_question(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT COUNT(*) AS n FROM people WHERE CURRENT_DATE > DATE '2026-01-01'"
    day = dt.datetime(2026, 11, 23, tzinfo=dt.UTC)
    planner = engine._visible_to(LOCAL).planner
    monkeypatch.setattr(planner, "_clock", lambda: day)
    ask(engine, sql)
    free = ask(engine, sql)
    assert ask(engine, sql) is free
    monkeypatch.setattr(planner, "_clock", lambda: day + dt.timedelta(days=1))
    later = ask(engine, sql)
    assert later is not free
    assert later.receipt is not None
    assert "2026-11-24" in later.receipt.notes[0]


def test_views_of_the_ledger_are_read_anew(engine: Engine) -> None:
    sql = (
        "SELECT n, (SELECT COUNT(*) FROM data_privacy.budgets) AS tables "
        "FROM (SELECT COUNT(*) AS n FROM people) AS p"
    )
    ask(engine, sql)
    assert ask(engine, sql) is not ask(engine, sql)


def test_each_answer_counts(engine: Engine) -> None:
    ask(engine, COUNT)
    for _ in range(4):
        ask(engine, COUNT)
    ((_, tally),) = engine.usage._counts.items()
    assert (tally.n_paid, tally.n_free) == (1, 4)
    assert sum(tally.widths) == 5
    assert tally.plain_units_free == 4 * tally.plain_units_paid
