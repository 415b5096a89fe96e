"""Bounds that fit a statement: of each unit only so many rows, or so much of a sum, count."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.auditor.verify import verify
from accountant.ledger import Payer, Role
from cube.refusals import (
    BudgetExhausted,
    CostAboveCap,
    InvalidRequest,
    InvalidTarget,
    UnsupportedSql,
)
from proxy.api import LOCAL, BatchRequest, Caller, QueryRequest, QueryResult
from proxy.bootstrap import Service
from tests.support.configured import answer, configured, spent

ROWS_MAX = 100
CONFIGURATION = """[ledger]
path = "shop.ledger"
[tables.orders]
source = "orders.csv"
unit = "customer"
rows_per_unit_max = {rows_max}
budget = "1000"
n_records_max = 100000
half_width = 200
{more}
[tables.orders.columns.channel]
kind = "category"
levels = ["web", "shop"]
[tables.orders.columns.day]
kind = "integer"
low = 1
high = 30
[tables.orders.columns.amount]
kind = "measure"
low = 0
high = 200
step = 5
"""

ANN = Caller(Payer("ann"), Role.ANALYST, ("orders",))
Order = tuple[int, str, int, int]


def orders() -> list[Order]:
    """One to three orders of most customers on the web, and 30 of a few of them."""
    rng = np.random.default_rng(4)
    found = []
    for customer in range(3_000):
        n_rows = 30 if customer % 200 == 0 else 1 + customer % 3
        for number in range(n_rows):
            channel = "web" if number % 4 else "shop"
            amount = 5 * int(rng.integers(1, 9))
            found.append((customer, channel, 1 + int(rng.integers(30)), amount))
    return found


ORDERS = orders()


@contextmanager
def served(folder: Path, *, rows_max: int = ROWS_MAX, more: str = "") -> Iterator[Service]:
    lines = ["customer,channel,day,amount", *(",".join(map(str, one)) for one in ORDERS)]
    (folder / "orders.csv").write_text("\n".join(lines) + "\n")
    with configured(folder, CONFIGURATION.format(rows_max=rows_max, more=more)) as service:
        yield service


def asked(options: str, rest: str) -> str:
    return f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) {rest}"


def counted(n_rows: int) -> dict[str, int]:
    """The bounded counts of all channels together, by definition, and of the web."""
    by_customer = Counter(customer for customer, *_ in ORDERS)
    on_the_web = Counter(customer for customer, channel, *_ in ORDERS if channel == "web")
    return {
        "all": sum(min(n_rows, one) for one in by_customer.values()),
        "web": sum(min(n_rows, one) for one in on_the_web.values()),
    }


def interval(found: QueryResult) -> tuple[float, float]:
    assert found.receipt is not None
    (column,) = found.receipt.columns
    return column.low[0], column.high[0]


def widened(found: QueryResult) -> tuple[float, float]:
    """An interval ten times as wide, which holds with a probability of 1 - 1e-13."""
    low, high = interval(found)
    middle, half = (low + high) / 2, (high - low) / 2
    return middle - 10 * half, middle + 10 * half


def test_a_statement_costs_as_many_rows_as_it_counts_of_each_customer(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        for n_rows in (1, 3):
            before = spent(service)
            options = f"half_width => 50, rows_per_unit => {n_rows}"
            sql = asked(options, "COUNT(*) AS n FROM orders WHERE channel = 'web'")
            found = answer(service, sql)
            price = float(spent(service) - before)
            assert price == pytest.approx(n_rows * math.log(20) / 50, rel=1e-3)
            low, high = widened(found)
            assert low <= counted(n_rows)["web"] <= high
            assert found.receipt is not None
            assert found.receipt.epsilon_spent == spent(service) - before
            assert any(
                f"at most {n_rows} rows of each customer" in one for one in found.receipt.notes
            )
            again = answer(service, sql)
            assert again.data.equals(found.data)
            assert spent(service) - before == found.receipt.epsilon_spent
            narrow = answer(service, sql.replace("50", "25"))
            assert float(spent(service) - before) == pytest.approx(2 * price, rel=1e-2)
            assert interval(narrow)[1] - interval(narrow)[0] <= 50
        assert verify(service.ledger.entries()).problem is None


def test_a_sum_is_cut_at_the_most_that_a_customer_adds(tmp_path: Path) -> None:
    sums: dict[int, int] = defaultdict(int)
    for customer, _, _, amount in ORDERS:
        sums[customer] += amount
    truth = sum(min(one, 100) for one in sums.values())
    with served(tmp_path) as service:
        sql = asked("half_width => 2000, unit_sum_max => 100", "SUM(amount) AS n FROM orders")
        found = answer(service, sql)
        low, high = widened(found)
        assert low <= truth <= high
        assert float(spent(service)) == pytest.approx(100 * math.log(20) / 2000, rel=1e-2)
        assert truth < sum(sums.values()) - 2 * 2000
        assert verify(service.ledger.entries()).problem is None


def test_bounds_that_bound_nothing_are_answered_as_without(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        plain = answer(service, asked("half_width => 200", "COUNT(*) AS n FROM orders"))
        before = spent(service)
        for option in ("rows_per_unit => 100", "rows_per_unit => 7000", "rows_per_unit => 'auto'"):
            found = answer(
                service, asked(f"half_width => 200, {option}", "COUNT(*) AS n FROM orders")
            )
            assert found.data.equals(plain.data)
        assert spent(service) == before


def test_formulas_of_one_count_and_groups_have_bounds(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        options = "rows_per_unit => 2, half_width => 300"
        by_channel = answer(
            service,
            asked(
                options,
                "channel, COUNT(*) AS n, 2 * COUNT(*) + 10 AS m FROM orders GROUP BY channel",
            ),
        )
        assert by_channel.data.num_rows == 2
        for row in by_channel.data.to_pylist():
            assert row["m"] == pytest.approx(2 * row["n"] + 10)
        people = answer(
            service,
            asked(options, "COUNT(DISTINCT customer) AS n FROM orders WHERE channel = 'web'"),
        )
        low, high = widened(people)
        assert low <= counted(1)["web"] <= high


def test_a_bound_that_fits_is_found_for_less_than_it_saves(tmp_path: Path) -> None:
    """Few customers have more than three orders on the web of one week."""
    week = "COUNT(*) AS n FROM orders WHERE channel = 'web' AND day <= 7"
    truth = sum(channel == "web" and day <= 7 for _, channel, day, _ in ORDERS)
    with served(tmp_path) as service:
        found = answer(service, asked("half_width => 50, rows_per_unit => 'auto'", week))
        paid = spent(service)
        assert found.receipt is not None
        assert found.receipt.epsilon_spent == paid
        assert float(paid) < 100 * math.log(20) / 50 / 4
        (said,) = (one for one in found.receipt.notes if one.startswith("orders: for COUNT(*)"))
        assert re.search(
            r"at most \d+ rows of each customer count\. About \d+ customers have", said
        )
        assert interval(found)[0] - 500 <= truth <= interval(found)[1] + 500
        again = answer(service, asked("half_width => 50, rows_per_unit => 'auto'", week))
        assert again.data.equals(found.data)
        assert spent(service) == paid
        told = service.engine.explain(
            QueryRequest(sql=asked("half_width => 20", week), caller=LOCAL)
        )
        assert "rows_per_unit => " in told.data.to_pylist()[0]["advice"]
        assert verify(service.ledger.entries()).problem is None


def test_a_receipt_warns_where_noise_can_hide_most_of_the_rows(tmp_path: Path) -> None:
    """Thirty customers have as many orders as all others; a cheap look does not see them."""
    few = [(customer, "web", 1, 5) for customer in range(3_000)]
    many = [(3_000 + customer, "web", 1, 5) for customer in range(30) for _ in range(100)]
    lines = ["customer,channel,day,amount", *(",".join(map(str, one)) for one in few + many)]
    (tmp_path / "orders.csv").write_text("\n".join(lines) + "\n")
    with configured(tmp_path, CONFIGURATION.format(rows_max=ROWS_MAX, more="")) as service:
        sql = asked("half_width => 50, rows_per_unit => 'auto'", "COUNT(*) AS n FROM orders")
        found = answer(service, sql)
        assert found.receipt is not None
        low, high = interval(found)
        is_told = any(
            "Noise can hide that most of the number" in one for one in found.receipt.notes
        )
        assert low - 100 <= 6_000 <= high + 100 or is_told


@pytest.mark.parametrize(
    "rest",
    [
        "COUNT(*) AS n FROM orders WHERE channel = 'web' AND channel = 'shop' AND day = 1",
        "COUNT(*) AS n FROM orders WHERE channel = 'web' AND day = 1",
        "SUM(amount) AS n FROM orders WHERE day < 3",
        "COUNT(*) AS n FROM orders",
    ],
)
@pytest.mark.parametrize("options", ["half_width => 100", "relative => 0.2"])
def test_a_search_for_a_bound_costs_little_more_than_none(
    tmp_path: Path, rest: str, options: str
) -> None:
    if "SUM" in rest:
        options = options.replace("=> 100", "=> 2000")
    costs = []
    for name, more in (("plain", ""), ("auto", ", rows_per_unit => 'auto'")):
        (folder := tmp_path / name).mkdir()
        with served(folder) as service:
            answer(service, asked(options + more, rest))
            costs.append(float(spent(service)))
    assert costs[1] <= 1.5 * costs[0] + 0.01


def test_a_cap_covers_what_is_paid_to_find_a_bound(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        options = "epsilon => 0.05, half_width => 5, rows_per_unit => 'auto'"
        with pytest.raises(CostAboveCap):  # a single row of each costs more: nothing is bought
            answer(service, asked(options, "COUNT(*) AS n FROM orders"))
        assert spent(service) == 0
        options = "epsilon => 0.1, half_width => 50, rows_per_unit => 'auto'"
        with pytest.raises(CostAboveCap, match="0") as refused:
            answer(service, asked(options, "SUM(amount) AS n FROM orders"))
        assert spent(service) <= Fraction(1, 10)
        assert ("was spent to find a bound" in str(refused.value.hint)) == (spent(service) > 0)


def test_a_cap_is_of_all_tables_and_a_refusal_of_one_charges_no_other(tmp_path: Path) -> None:
    lines = ["customer,channel,day,amount", "1,web,1,5", "1,web,2,10"]
    (tmp_path / "visits.csv").write_text("\n".join(lines) + "\n")
    tables = CONFIGURATION.format(rows_max=ROWS_MAX, more="")
    visits = tables.partition("[tables.orders]")[2].replace("orders", "visits")
    rows = [",".join(map(str, one)) for one in ORDERS]
    (tmp_path / "orders.csv").write_text("\n".join([lines[0], *rows]) + "\n")
    text = f"{tables}\n[tables.visits]{visits}".replace('budget = "1000"', 'budget = "0.5"')
    both = "COUNT(*) AS n FROM orders UNION ALL SELECT COUNT(*) FROM visits"
    with configured(tmp_path, text) as service:
        with pytest.raises((CostAboveCap, BudgetExhausted)):
            answer(
                service, asked("epsilon => 0.03, half_width => 300, rows_per_unit => 'auto'", both)
            )
        assert sum(one.spent for one in service.budgets()) <= Fraction(3, 100)
        before = sum(one.spent for one in service.budgets())
        with pytest.raises(BudgetExhausted):
            answer(service, asked("half_width => 2, rows_per_unit => 'auto'", both))
        assert sum(one.spent for one in service.budgets()) == before


def test_a_batch_has_no_bounds(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        for bound in ("'auto'", "2"):
            sql = asked(f"half_width => 50, rows_per_unit => {bound}", "COUNT(*) AS n FROM orders")
            with pytest.raises(InvalidRequest):
                service.engine.plan_batch(BatchRequest(sql=f"{sql};", caller=LOCAL))
        assert spent(service) == 0


def test_explain_says_how_to_find_a_bound_and_charges_nothing(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        for options in ("half_width => 20", "half_width => 20, rows_per_unit => 'auto'"):
            told = service.engine.explain(
                QueryRequest(sql=asked(options, "SUM(amount) AS n FROM orders"), caller=LOCAL)
            )
            assert "'auto'" in told.data.to_pylist()[0]["advice"]
        assert spent(service) == 0


@pytest.mark.parametrize(
    ("options", "rest", "kind"),
    [
        ("rows_per_unit => 0", "COUNT(*) FROM orders", InvalidTarget),
        ("rows_per_unit => 1.5", "COUNT(*) FROM orders", InvalidTarget),
        ("rows_per_unit => 'most'", "COUNT(*) FROM orders", InvalidTarget),
        ("unit_sum_max => 0", "SUM(amount) FROM orders", InvalidTarget),
        ("unit_sum_max => 0.5", "SUM(amount) FROM orders", InvalidTarget),
        ("unit_sum_max => 'auto'", "SUM(amount) FROM orders", InvalidTarget),
        ("rows_per_unit => 2", "DP_CHI2_TEST(channel, day) FROM orders", UnsupportedSql),
        ("rows_per_unit => 2", "AVG(amount) FROM orders", UnsupportedSql),
        ("rows_per_unit => 'auto'", "STDDEV(amount) FROM orders", UnsupportedSql),
        (
            "rows_per_unit => 2",
            "COUNT(*) FILTER (WHERE day = 1) / COUNT(*) FROM orders",
            UnsupportedSql,
        ),
        ("unit_sum_max => 90, rows_per_unit => 'auto'", "SUM(amount) FROM orders", InvalidTarget),
        (
            "rows_per_unit => 2, consistency => 'exact'",
            "channel, day, COUNT(*) FROM orders GROUP BY CUBE(channel, day)",
            UnsupportedSql,
        ),
    ],
)
def test_what_is_no_bound_is_refused_and_charges_nothing(
    tmp_path: Path, options: str, rest: str, kind: type[Exception]
) -> None:
    with served(tmp_path) as service:
        with pytest.raises(kind):
            answer(service, asked(f"half_width => 100, {options}", rest))
        assert spent(service) == 0


def test_a_table_with_one_row_of_each_unit_has_no_other_bound(tmp_path: Path) -> None:
    first = {customer: (customer, "web", 1, 5) for customer, *_ in ORDERS}
    lines = ["customer,channel,day,amount", *(",".join(map(str, one)) for one in first.values())]
    (tmp_path / "orders.csv").write_text("\n".join(lines) + "\n")
    with configured(tmp_path, CONFIGURATION.format(rows_max=1, more="")) as service:
        for bound in ("rows_per_unit => 2", "rows_per_unit => 'auto'"):
            found = answer(
                service, asked(f"half_width => 50, {bound}", "COUNT(*) AS n FROM orders")
            )
            low, high = widened(found)
            assert low <= len(first) <= high
        assert float(spent(service)) == pytest.approx(math.log(20) / 50, rel=1e-3)
        with pytest.raises(InvalidTarget, match="one row"):
            answer(service, asked("unit_sum_max => 50", "SUM(amount) FROM orders"))


def test_a_private_history_does_not_choose_a_bound(tmp_path: Path) -> None:
    """Its price would tell what others have asked. A number that is named is public."""
    with served(tmp_path, more='history = "private"') as service:
        sql = asked("rows_per_unit => {}, half_width => 50", "COUNT(*) AS n FROM orders")
        request = QueryRequest(sql=sql.format("'auto'"), caller=ANN)
        for ask in (service.engine.answer, service.engine.explain):
            with pytest.raises(InvalidTarget, match="private"):
                ask(request)
        assert spent(service) == 0
        service.engine.answer(QueryRequest(sql=sql.format(2), caller=ANN))
        assert spent(service) > 0


@pytest.mark.slow
def test_intervals_hold_of_what_counts(tmp_path: Path) -> None:
    """Of 600 counts at 90 %, right code has fewer than 500 or more than 575 once in 10**4 runs."""
    truth: Mapping[tuple[str, int], int] = Counter(
        (channel, day)
        for channel, day in {
            (customer, channel, day): (channel, day) for customer, channel, day, _ in ORDERS
        }.values()
    )
    held = 0
    for number in range(10):
        (folder := tmp_path / f"bounded {number}").mkdir()
        with served(folder) as service:
            for day in range(1, 31):
                sql = asked(
                    "half_width => 10, confidence => 0.9, rows_per_unit => 1",
                    f"COUNT(*) AS n FROM orders WHERE day = {day} AND channel = 'web'",
                )
                low, high = interval(answer(service, sql))
                held += low <= truth["web", day] <= high
                sql = sql.replace("web", "shop")
                low, high = interval(answer(service, sql))
                held += low <= truth["shop", day] <= high
    assert 500 <= held <= 575
