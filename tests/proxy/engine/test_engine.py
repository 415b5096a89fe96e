"""The flow of one query, on a real table with a real gate and ledger."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.refusals import (
    BudgetExhausted,
    CostAboveCap,
    InvalidTarget,
    Refused,
    SourceUnavailable,
)
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, QueryRequest, QueryResult
from proxy.engine.engine import Engine
from proxy.engine.explain import EXPLANATION_SCHEMA
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from proxy.tables.private_table import ServedTable
from tests.support.fakes import FailingSource
from tests.support.worlds import DEFAULT, SCHEMA, Row, people_engine, random_rows, write_csv

ROWS = random_rows(2000)
DP = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with people_engine(tmp_path, ROWS) as engine:
        yield engine


def ask(engine: Engine, sql: str, **target: object) -> QueryResult:
    return engine.answer(QueryRequest(sql=sql, target=RequestedTarget(**target)))  # type: ignore[arg-type]  # one helper for every kind of target


def spent(engine: Engine) -> Fraction:
    return engine.budgets(LOCAL)[0].spent


def test_a_count_is_measured_once_and_free_ever_after(engine: Engine) -> None:
    first = ask(engine, "SELECT COUNT(*) AS n FROM people WHERE age >= 65")
    assert first.receipt is not None
    assert first.receipt.columns[0].source == "measured"
    assert first.receipt.epsilon_spent > 0
    again = ask(engine, "select count(*) as N from PEOPLE p where not (p.AGE < 65)")
    assert again.receipt is not None
    assert again.receipt.columns[0].source == "history"
    assert again.receipt.epsilon_spent == 0
    assert again.data.column(0).to_pylist() == first.data.column(0).to_pylist()


def test_an_interval_is_never_wider_than_the_target(tmp_path: Path) -> None:
    with people_engine(tmp_path, ROWS, budget=Fraction(50)) as engine:
        check_widths(engine)


def check_widths(engine: Engine) -> None:
    for sql in (
        "SELECT COUNT(*) AS n FROM people",
        "SELECT city, COUNT(*) AS n FROM people GROUP BY city",
        "SELECT 3 * COUNT(*) FILTER (WHERE member) - COUNT(*) / 2 + 7 AS n FROM people",
        f"{DP}(half_width => 900, confidence => 0.9) SUM(visits) AS n FROM people",
        f"{DP}(half_width => 1, confidence => 0.05) COUNT(*) AS n FROM people WHERE age > 50",
        f"{DP}(half_width => 200, confidence => 0.999999) COUNT(*) AS n FROM people WHERE age > 9",
    ):
        release = ask(engine, sql)
        assert release.receipt is not None
        half_width = {"half_width => 900": 900, "half_width => 1,": 1, "half_width => 200": 200}
        wanted = next((value for text, value in half_width.items() if text in sql), 20)
        column = release.receipt.columns[0]
        for low, high in zip(column.low, column.high, strict=True):
            assert high - low <= 2 * wanted * (1 + 1e-12)


def test_a_group_by_costs_what_one_group_costs(engine: Engine) -> None:
    ask(engine, "SELECT city, COUNT(*) AS n FROM people GROUP BY city")
    grouped = spent(engine)
    ask(engine, "SELECT COUNT(*) AS n FROM people WHERE age = 40 AND visits = 3")
    assert spent(engine) == 2 * grouped
    assert ask(engine, "SELECT COUNT(*) AS n FROM people WHERE city = 'Oslo'").receipt
    assert spent(engine) == 2 * grouped


def test_disjoint_counts_cost_what_one_costs(engine: Engine) -> None:
    ask(engine, "SELECT COUNT(*) FROM people WHERE age < 30")
    one = spent(engine)
    ask(engine, "SELECT COUNT(*) FROM people WHERE age >= 30 AND age < 60")
    ask(engine, "SELECT COUNT(*) FROM people WHERE age >= 60")
    assert spent(engine) == one


def test_every_group_of_the_domain_appears_and_null_is_one(engine: Engine) -> None:
    release = ask(engine, "SELECT city, COUNT(*) AS n FROM people GROUP BY city")
    assert release.data.column("city").to_pylist() == ["Oslo", "Paris", "Rome", None]


def test_cost_and_source_ride_along_when_asked_for(engine: Engine) -> None:
    sql = (
        "SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n) AS high, "
        "DP_COST(n) AS cost, DP_SOURCE(n) AS source FROM people"
    )
    row = ask(engine, sql).data.to_pylist()[0]
    assert row["low"] < row["n"] < row["high"]
    assert row["source"] == "measured"
    assert row["cost"] == pytest.approx(float(spent(engine)))
    assert ask(engine, sql).data.to_pylist()[0]["cost"] == 0


def test_the_costs_of_the_columns_add_up_to_what_was_spent(engine: Engine) -> None:
    release = ask(engine, "SELECT COUNT(*) AS a, COUNT(*) AS b, SUM(visits) / 4 AS c FROM people")
    assert release.receipt is not None
    assert sum(column.epsilon_spent for column in release.receipt.columns) == spent(engine)
    assert release.receipt.columns[1].epsilon_spent == 0


def test_a_budget_that_cannot_pay_refuses_before_anything_is_charged(engine: Engine) -> None:
    with pytest.raises(BudgetExhausted):
        ask(engine, "SELECT COUNT(*) FROM people", half_width=0.1)
    assert spent(engine) == 0


def test_a_cap_refuses_what_it_cannot_pay_and_lets_through_what_it_can(engine: Engine) -> None:
    with pytest.raises(CostAboveCap):
        ask(engine, f"{DP}(half_width => 20) COUNT(*) FROM people", epsilon_cap=Fraction(1, 1000))
    assert spent(engine) == 0
    ask(engine, "SELECT COUNT(*) FROM people", epsilon_cap=Fraction(1))
    ask(engine, "SELECT COUNT(*) FROM people", epsilon_cap=Fraction(0))


def test_explaining_charges_nothing_and_tells_the_price(engine: Engine) -> None:
    sql = "SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE member) AS m FROM people"
    explained = ask(engine, f"EXPLAIN PRIVACY {sql}")
    assert explained.receipt is None
    assert explained.data.schema.equals(EXPLANATION_SCHEMA)
    assert spent(engine) == 0
    price = engine.explain(QueryRequest(sql=sql)).epsilon
    ask(engine, sql)
    assert spent(engine) == price
    assert engine.explain(QueryRequest(sql=sql)).epsilon == 0


def test_the_schema_of_a_result_is_known_for_free(engine: Engine) -> None:
    sql = "SELECT city, member, COUNT(*) AS n, DP_SOURCE(n) AS s FROM people GROUP BY city, member"
    schema = engine.result_schema(QueryRequest(sql=sql))
    assert spent(engine) == 0
    assert ask(engine, sql).data.schema.equals(schema)


def test_an_impossible_group_by_is_empty_and_free(engine: Engine) -> None:
    release = ask(engine, "SELECT city, COUNT(*) AS n FROM people WHERE age < 0 GROUP BY city")
    assert release.data.num_rows == 0
    assert spent(engine) == 0


def test_an_absurd_target_for_an_absurd_multiple_is_refused(engine: Engine) -> None:
    with pytest.raises(InvalidTarget):
        ask(engine, "SELECT COUNT(*) * 1e60 FROM people", half_width=1e-300)
    assert spent(engine) == 0


def test_what_waited_for_the_source_is_not_bought_again(tmp_path: Path) -> None:
    """The charge of a failed read stands; later questions are answered by it, at no price."""
    folder = write_csv(tmp_path / "people.csv", ROWS)
    source = FailingSource(DuckDbSource(SCHEMA, SourceLocation(path=folder)), 1, "down")
    with open_ledger(tmp_path / "people.ledger") as ledger:
        gate = open_table(ledger, SCHEMA, Fraction(1), source, SystemNoise())
        engine = Engine({SCHEMA.table: ServedTable(SCHEMA, DEFAULT, gate)})
        with pytest.raises(SourceUnavailable):
            ask(engine, "SELECT COUNT(*) AS n FROM people")
        paid = spent(engine)
        assert paid > 0
        receipt = ask(engine, "SELECT COUNT(*) AS n FROM people", half_width=30.0).receipt
        assert receipt is not None
        assert spent(engine) == paid
        assert receipt.epsilon_spent == 0
        assert receipt.columns[0].source == "history"


def test_what_is_left_is_never_below_nothing(tmp_path: Path) -> None:
    with people_engine(tmp_path, ROWS) as engine:
        ask(engine, "SELECT COUNT(*) FROM people")
    with people_engine(tmp_path, ROWS, budget=Fraction(1, 100)) as engine:
        assert spent(engine) > Fraction(1, 100)
        assert engine.budgets(LOCAL)[0].left == 0


@pytest.mark.parametrize("half_width", [0.0, -3.0, float("nan"), float("inf"), 1e-9])
def test_an_impossible_half_width_is_refused(engine: Engine, half_width: float) -> None:
    with pytest.raises(InvalidTarget):
        ask(engine, "SELECT COUNT(*) FROM people", half_width=half_width)
    assert spent(engine) == 0


def test_a_history_survives_a_restart(tmp_path: Path) -> None:
    sql = "SELECT member, COUNT(*) AS n FROM people GROUP BY member"
    with people_engine(tmp_path, ROWS) as engine:
        before = ask(engine, sql)
        paid = spent(engine)
    with people_engine(tmp_path, ROWS) as engine:
        after = ask(engine, sql)
        assert spent(engine) == paid
        assert after.data.equals(before.data)


QUESTIONS = (
    "SELECT COUNT(*) FROM people WHERE age > 70",
    "SELECT city, COUNT(*) FROM people GROUP BY city",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 20) SUM(visits) FROM people",
    "SELECT COUNT(*) FROM people WHERE city = 'Oslo' AND age > 70",
    "SELECT COUNT(*) FROM people",
    "SELECT MAX(age) FROM people",
    "SELECT COUNT(*) FROM people WHERE member",
)


def test_decisions_are_the_same_on_neighbouring_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One row more or less: the same answers are free, bought and refused, at the same price.

    A refusal's advice goes unsaid where it takes long, which a busy machine decides; not here.
    """
    monkeypatch.setattr("proxy.engine.search.SECONDS_MAX", 600.0)

    def decisions(name: str, rows: list[Row]) -> list[object]:
        folder = tmp_path / name
        folder.mkdir()
        made: list[object] = []
        with people_engine(folder, rows, budget=Fraction(2)) as engine:
            for sql in QUESTIONS:
                try:
                    receipt = ask(engine, sql).receipt
                except Refused as refusal:
                    made.append((refusal.code, refusal.explain()))
                    continue
                if receipt is not None:
                    made.append((receipt.epsilon_spent, receipt.columns[0].source))
        return made

    assert decisions("with", ROWS) == decisions("without", ROWS[1:])
    assert decisions("empty", []) == decisions("one", ROWS[:1])
