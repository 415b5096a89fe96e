"""Around COUNT(DISTINCT unit): EXPLAIN, views, the report, refusals, batches, other bounds."""

import json
import threading
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.auditor.verify import verify
from cube.refusals import (
    BudgetExhausted,
    ConfigurationInvalid,
    InvalidRequest,
    Refused,
    UnknownName,
    UnsupportedSql,
)
from proxy.api.requests import BatchRequest, QueryRequest
from tests.support.commands import command_runner
from tests.support.configured import ask, spent
from tests.support.customers import (
    ALL,
    ANN,
    BY_CHANNEL,
    N_CUSTOMERS,
    N_ROWS_MAX,
    NATS,
    SURE,
    orders,
    served,
    write_orders,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_orders(tmp_path)
    return tmp_path


def test_explain_says_what_it_would_cost_and_charges_nothing(folder: Path) -> None:
    with served(folder) as service:
        (row,) = ask(service, f"EXPLAIN PRIVACY {BY_CHANNEL}")
        assert (row["candidate"], row["source"]) == ("units", "measured")
        assert row["epsilon"] == pytest.approx(3 * NATS / 100, rel=1e-4)
        assert spent(service) == 0
        ask(service, BY_CHANNEL)
        assert spent(service) == pytest.approx(row["epsilon"])
        (row,) = ask(service, f"EXPLAIN PRIVACY {BY_CHANNEL}")
        assert (row["candidate"], row["source"], row["epsilon"]) == (None, "history", 0.0)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(DISTINCT customer) FILTER (WHERE WAS_CUT(customer)) AS n FROM orders",
        "SELECT COUNT(DISTINCT CASE WHEN WAS_CUT(customer) THEN customer END) AS n FROM orders",
        "SELECT COUNT(DISTINCT CASE WHEN was_cut(customer) THEN customer END) n FROM orders o",
        "SELECT COUNT(DISTINCT CASE WHEN hour > -1 AND was_cut(customer) THEN customer END) n {}",
    ],
)
def test_how_many_customers_had_orders_left_out_is_a_count_like_any_other(
    folder: Path, sql: str
) -> None:
    with served(folder, rows_max=2) as service:
        n_orders = Counter(customer for customer, _, _ in orders())
        n_cut = sum(n > 2 for n in n_orders.values())
        (row,) = ask(service, sql.format("FROM orders"), half_width=10)
        assert spent(service) == pytest.approx(NATS / 10, rel=1e-4)
        assert abs(row["n"] - n_cut) < 10 * SURE
        assert 200 < n_cut < 1200
        (every,) = ask(service, ALL, half_width=10)
        assert abs(every["n"] - N_CUSTOMERS) < 10 * SURE
        assert spent(service) == pytest.approx(2 * NATS / 10, rel=1e-4)
        assert verify(service.ledger.entries()).problem is None


def test_rows_are_not_told_by_whether_others_were_left_out(folder: Path) -> None:
    with served(folder) as service:
        for sql in (
            "SELECT COUNT(*) AS n FROM orders WHERE WAS_CUT(customer)",
            "SELECT COUNT(*) FILTER (WHERE WAS_CUT(customer)) AS n FROM orders",
            "SELECT COUNT(DISTINCT customer) FILTER (WHERE NOT WAS_CUT(customer)) FROM orders",
            "SELECT COUNT(DISTINCT customer) AS n FROM orders WHERE WAS_CUT(customer)",
        ):
            with pytest.raises(Refused):
                ask(service, sql)
        assert spent(service) == 0


def test_a_relative_target_is_searched_for(folder: Path) -> None:
    sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(relative=0.05) {ALL[7:]}"
    with served(folder) as service:
        (row,) = ask(service, sql)
        assert abs(row["n"] - N_CUSTOMERS) < 0.05 * N_CUSTOMERS * 1.2 * SURE
        assert spent(service) < 2.5 * NATS / (0.05 * N_CUSTOMERS)
        price = spent(service)
        assert ask(service, sql) == [row]
        assert spent(service) == price


def test_the_views_show_what_was_counted(folder: Path) -> None:
    with served(folder) as service:
        ask(service, BY_CHANNEL)
        ask(service, "SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel")
        ask(service, f"{ALL.replace('AS n', 'FILTER (WHERE WAS_CUT(customer)) AS n')}")
        rows = ask(service, "SELECT query, n_rows FROM data_privacy.history ORDER BY query")
        assert rows == [
            {"query": "COUNT(*) GROUP BY channel", "n_rows": 3},
            {"query": "COUNT(DISTINCT customer) FILTER (WHERE WAS_CUT(customer))", "n_rows": 1},
            {"query": "COUNT(DISTINCT customer) GROUP BY channel", "n_rows": 3},
        ]


def test_the_report_says_what_they_cost_and_what_they_were(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(folder) as service:
        ask(service, BY_CHANNEL)
        ask(service, f"{ALL} WHERE hour < 12 OR channel = 'web'")
    run = command_runner(capsys, monkeypatch)
    ledger, written = folder / "orders.ledger", folder / "report.json"
    made = run("audit", "report", ledger, "--output", written)
    assert made.code == 0, made.err
    (table,) = json.loads(written.read_text())["tables"]
    assert float(Fraction(table["spent_on_unit_counts"])) == pytest.approx(4 * NATS / 100, rel=1e-4)
    bought = [one["bought"] for one in table["dearest_charges"]]
    assert bought[0] == "COUNT(DISTINCT customer) GROUP BY channel"
    assert bought[1].startswith("COUNT(DISTINCT customer) WHERE")
    assert "for counts of units" in run("audit", "verify", ledger).out


def test_it_is_refused_before_it_is_charged_if_it_does_not_fit(folder: Path) -> None:
    """Also where the rows beside it would fit by themselves."""
    with served(folder, budget="0.15") as service:
        sql = BY_CHANNEL.replace("AS n", "AS n, COUNT(*) AS m")
        with pytest.raises(BudgetExhausted) as refused:
            ask(service, sql, half_width=100.0)
        assert float(refused.value.shortfall.epsilon_needed) == pytest.approx(
            7 * NATS / 100, rel=0.01
        )
        assert refused.value.shortfall.fitting is not None
        assert spent(service) == 0


def test_a_private_history_shows_what_a_first_statement_costs(folder: Path) -> None:
    with served(folder, history="private") as service:
        for _ in range(2):
            found = service.engine.answer(QueryRequest(sql=BY_CHANNEL, caller=ANN))
            assert found.receipt is not None
            assert float(found.receipt.epsilon_spent) == pytest.approx(3 * NATS / 100, rel=1e-4)


def test_who_ask_the_same_at_once_pay_for_it_once(folder: Path) -> None:
    with served(folder) as service:
        failures: list[BaseException] = []

        def one() -> None:
            try:
                ask(service, BY_CHANNEL)
            except BaseException as failure:  # noqa: BLE001 - shown below
                failures.append(failure)

        threads = [threading.Thread(target=one) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert spent(service) == pytest.approx(3 * NATS / 100, rel=1e-4)


@pytest.mark.parametrize(
    ("sql", "refusal"),
    [
        ("SELECT COUNT(DISTINCT nobody) AS n FROM orders", UnknownName),
        ("SELECT customer FROM orders GROUP BY customer", UnknownName),
        ("SELECT SUM(COUNT(DISTINCT customer)) AS n FROM orders", UnsupportedSql),
        ("SELECT COUNT(DISTINCT CASE channel WHEN 'web' THEN customer END) FROM orders", Refused),
    ],
)
def test_other_uses_of_the_unit_are_refused(folder: Path, sql: str, refusal: type[Refused]) -> None:
    with served(folder) as service:
        with pytest.raises(refusal):
            ask(service, sql)
        assert spent(service) == 0


def test_a_batch_does_not_plan_them(folder: Path) -> None:
    with served(folder) as service:
        request = BatchRequest(sql=f"{ALL}; {BY_CHANNEL}", buy=True)
        with pytest.raises(InvalidRequest, match="batch"):
            service.engine.plan_batch(request)
        assert spent(service) == 0


def test_the_bound_on_groups_is_for_units_with_several_rows(folder: Path) -> None:
    with (
        pytest.raises(ConfigurationInvalid, match="groups_per_unit_max"),
        served(folder, more="groups_per_unit_max = 5"),
    ):
        pass


def test_another_bound_on_groups_is_another_question(folder: Path) -> None:
    """The owner may change it: what was counted with the former one is not raised, nor shown."""
    with served(folder) as service:
        ask(service, BY_CHANNEL)
    with served(folder, more="groups_per_unit_max = 1") as service:
        ask(service, BY_CHANNEL)
        assert spent(service) == pytest.approx(4 * NATS / 100, rel=1e-4)
        ask(service, ALL)
        assert spent(service) == pytest.approx(5 * NATS / 100, rel=1e-4)
        assert verify(service.ledger.entries()).problem is None


def test_rows_bounded_at_each_level_cost_less_and_counts_of_customers_the_same(
    folder: Path,
) -> None:
    """One order an hour: a count of an hour's orders costs what one of its customers does."""
    with served(folder, more="rows_per_unit_max_by = {hour = 1}") as service:
        found = ask(service, "SELECT COUNT(DISTINCT customer) AS n, COUNT(*) AS m FROM orders")
        assert len(found) == 1
        assert spent(service) == pytest.approx((1 + N_ROWS_MAX) * NATS / 100, rel=0.01)
        by_hour = {(customer, hour) for customer, _, hour in orders()}
        n_orders = Counter(customer for customer, _, _ in orders())
        n_cut = sum(
            n > sum(one == customer for one, _ in by_hour) for customer, n in n_orders.items()
        )
        cut = "SELECT COUNT(DISTINCT customer) FILTER (WHERE WAS_CUT(customer)) AS n FROM orders"
        assert abs(ask(service, cut, half_width=5)[0]["n"] - n_cut) < 5 * SURE
        assert n_cut > 50
        verdict = verify(service.ledger.entries())
        (table,) = verdict.tables
        assert verdict.problem is None
        assert table.recomputed <= table.spent
