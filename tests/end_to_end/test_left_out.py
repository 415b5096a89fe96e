"""Answers say what they leave out: rows of a unit beyond the bound, clamped values, and OTHER.

Of 1,000 customers 300 have 5 orders, of which 2 are kept; the others have one. Amounts go beyond
what is declared, and there are shops that are not.
"""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
import sqlalchemy
import structlog

import tacit_client
from accountant.ledger.credentials import Role
from accountant.ledger.limits import Payer
from inference.noise_law.law import law_of_noise
from inference.posterior import Posterior
from proxy.api.receipts import RECEIPT_KEY
from proxy.api.requests import Caller, QueryRequest
from proxy.bootstrap import Service
from proxy.cli.app import main
from proxy.engine.across_tables import share_of
from proxy.monitoring.logs import configure_logs
from tests.support.configured import answer, configured, spent
from tests.support.postgres_wire import postgres_serving
from tests.support.serving import serving

N_CUSTOMERS, N_WITH_MORE = 1_000, 300
CONFIGURATION = """[ledger]
path = "orders.ledger"
[tables.orders]
source = "orders.csv"
unit = "customer"
rows_per_unit_max = 2
{more}
budget = "100"
n_records_max = 20000
half_width = 100
[tables.orders.columns.shop]
kind = "category"
levels = ["north", "south"]
other = "elsewhere"
[tables.orders.columns.amount]
kind = "measure"
low = 0
high = 200
step = 5
[tables.orders.columns.age]
kind = "integer"
low = 18
high = 90
other = -1
null = true
"""
KEPT = "at most 2 rows of each customer count"
BOUND = (
    f"orders: {KEPT}. All other rows are left out of every value, and intervals do not account for "
    "them."
)
CLAMPED = "Values of amount below 0 count as 0, those above 200 as 200."
ELSEWHERE = "Values of shop that are not declared, and NULL, count as 'elsewhere'."
NO_AGE = "Values of age that are not declared count as -1."
COUNT = "SELECT COUNT(*) AS n FROM orders"
CUT = "SELECT COUNT(DISTINCT customer) FILTER (WHERE WAS_CUT(customer)) AS cut FROM orders"
BOTH = f"{CUT.removesuffix(' FROM orders')}, COUNT(DISTINCT customer) AS n FROM orders"
ANN = Caller(Payer("ann"), Role.ANALYST, ("orders",))


@pytest.fixture(autouse=True)
def _server_logs_elsewhere() -> Iterator[None]:
    configure_logs(io.StringIO())
    yield
    structlog.reset_defaults()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [
        f"{customer},{('north', 'south', 'east')[customer % 3]},{customer % 400},{customer % 80}"
        for customer in range(N_CUSTOMERS)
        for _ in range(5 if customer < N_WITH_MORE else 1)
    ]
    (tmp_path / "orders.csv").write_text("\n".join(["customer,shop,amount,age", *lines]) + "\n")
    return tmp_path


@pytest.fixture
def service(folder: Path) -> Iterator[Service]:
    with configured(folder, CONFIGURATION.format(more="")) as service:
        yield service


def notes(service: Service, sql: str, half_width: float | None = None) -> tuple[str, ...]:
    receipt = answer(service, sql, half_width).receipt
    assert receipt is not None
    assert set(receipt.caveats) <= set(receipt.notes)
    return receipt.notes


@pytest.mark.parametrize(
    "sql",
    [
        COUNT,
        "SELECT COUNT(*) FROM orders WHERE amount > 50",
        "SELECT COUNT(DISTINCT customer) AS n FROM orders WHERE amount > 50",
        "SELECT MEDIAN(amount) AS m FROM orders",
        "SELECT CASE WHEN amount > 50 THEN 1 ELSE 0 END AS k, COUNT(*) FROM orders GROUP BY 1",
        "SELECT SUM(CASE WHEN amount > 50 THEN 1 ELSE 0 END) AS n FROM orders",
        f"SELECT a.n, b.late FROM ({COUNT}) AS a, (SELECT SUM(1) AS late FROM orders) AS b",  # noqa: S608 - words of this test
    ],
)
def test_the_bound_is_said_once_and_alone_where_nothing_else_is_left_out(
    service: Service, sql: str
) -> None:
    assert notes(service, sql) == (BOUND,)


def test_it_is_not_said_where_nothing_is_left_out(service: Service) -> None:
    """A list of what may be rests on no row, and each customer has one row at least."""
    assert BOUND not in notes(service, "SELECT DISTINCT age FROM orders")
    assert notes(service, "SELECT COUNT(DISTINCT customer) AS n FROM orders") == ()


def test_a_table_with_one_row_each_says_nothing(folder: Path) -> None:
    """It is refused if somebody has two, so none is left out."""
    lines = (folder / "orders.csv").read_text().splitlines()
    kept = {line.split(",")[0]: line for line in lines}.values()
    (folder / "orders.csv").write_text("\n".join(kept) + "\n")
    text = CONFIGURATION.format(more="").replace("rows_per_unit_max = 2", "")
    with configured(folder, text) as service:
        assert notes(service, COUNT) == ()


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT SUM(amount) AS s FROM orders", {CLAMPED}),
        ("SELECT AVG(amount) AS a, SUM(amount * amount) AS s FROM orders", {CLAMPED}),
        ("SELECT STDDEV(amount) AS d FROM orders WHERE shop = 'north'", {CLAMPED}),
        ("SELECT SUM(CASE WHEN age > 30 THEN amount END) AS s FROM orders", {CLAMPED}),
        ("SELECT shop, COUNT(*) AS n FROM orders GROUP BY shop", {ELSEWHERE}),
        ("SELECT UPPER(shop) AS s, AVG(amount) FROM orders GROUP BY 1", {ELSEWHERE, CLAMPED}),
        ("SELECT shop, COUNT(*) AS n FROM orders WHERE shop <> 'elsewhere' GROUP BY shop", set()),
        ("SELECT COUNT(DISTINCT shop) AS n FROM orders", {ELSEWHERE}),
        ("SELECT AVG(age) AS a FROM orders", {NO_AGE}),
        ("SELECT AVG(age) AS a FROM orders WHERE age >= 18", set()),
        ("SELECT age >= 30 AS old, COUNT(*) AS n FROM orders GROUP BY 1", {NO_AGE}),
    ],
)
def test_values_that_count_as_others_are_named_where_they_are_summed_or_grouped(
    service: Service, sql: str, told: set[str]
) -> None:
    found = notes(service, sql)
    about_values = {note for note in found if note.startswith("Values of")}
    assert about_values == told
    assert len(found) == len(set(found))
    assert BOUND in found


def test_of_how_many_units_rows_are_left_out_is_said_once_it_was_bought(service: Service) -> None:
    """First a number, then a share, each with an interval; for nothing more, and only if asked."""
    assert notes(service, COUNT) == (BOUND,)
    answer(service, CUT, 10)
    before = spent(service)
    (note,) = notes(service, COUNT)
    numbers = [float(one) for one in re.findall(r"\d+(?:\.\d+)?", note.removeprefix(BOUND))]
    about, low, high, confidence = numbers[:4]
    assert low <= about <= high
    assert high - low <= 21
    assert abs(about - N_WITH_MORE) < 60
    assert confidence == pytest.approx(0.95)
    assert spent(service) == before
    answer(service, BOTH, 10)
    before = spent(service)
    (note,) = notes(service, COUNT)
    assert " % of the units (" in note
    about, low, high = (float(one) for one in re.findall(r"([\d.]+) %", note))
    assert low <= about <= high
    assert abs(about - 100 * N_WITH_MORE / N_CUSTOMERS) < 6
    assert spent(service) == before


@pytest.mark.parametrize(
    ("bought", "sql", "has"),
    [
        ("shop = 'elsewhere'", "SELECT UPPER(shop) AS s, SUM(1) FROM orders GROUP BY 1", "shop"),
        ("amount IN (0, 200)", "SELECT SUM(amount) AS s FROM orders", "amount"),
    ],
)
def test_how_many_rows_have_values_that_count_as_others_is_said_once_it_was_bought(
    service: Service, bought: str, sql: str, has: str
) -> None:
    """Against the rows in plain sight; for nothing more, and not where another column is asked."""
    kept = [one for one in range(N_CUSTOMERS) for _ in range(2 if one < N_WITH_MORE else 1)]
    n_shop = sum(one % 3 == 2 for one in kept)
    n_amount = sum(not 2.5 <= one % 400 < 197.5 for one in kept)
    share = 100 * (n_shop if has == "shop" else n_amount) / len(kept)
    told = re.compile(
        r"About ([\d.]+) % of the rows of orders \(([\d.]+) % to ([\d.]+) % at confidence 0.95\) "
        rf"have {has} "
    )
    answer(service, COUNT, 10)
    assert not any(map(told.match, notes(service, sql, 300)))
    answer(service, f"SELECT COUNT(*) AS n FROM orders WHERE {bought}", 10)  # noqa: S608 - words of this test
    before = spent(service)
    (found,) = filter(None, map(told.match, notes(service, sql, 300)))
    about, low, high = map(float, found.groups())
    assert low - 0.5 <= about <= high + 0.5  # it has two digits
    assert abs(about - share) < 4
    assert high - low < 4
    assert not any(map(told.match, notes(service, COUNT, 10)))
    assert spent(service) == before


def test_what_others_bought_is_not_said_where_the_history_is_private(folder: Path) -> None:
    with configured(folder, CONFIGURATION.format(more='history = "private"')) as service:
        answer(service, BOTH, 10)
        found = service.engine.answer(QueryRequest(sql=COUNT, caller=ANN))
        assert found.receipt is not None
        assert found.receipt.notes == (BOUND,)
        assert "units" in notes(service, COUNT)[0]  # to the owner, who sees the history


@pytest.mark.parametrize(("said", "outside"), [(1.0, (0.0, 0.05)), (0.5, (0.06, 1.0))])
def test_a_share_holds_the_truth_as_often_as_is_said(
    said: float, outside: tuple[float, float]
) -> None:
    """Of 1,500 shares with drawn noise; with twice the noise that is said, it does not."""
    rng, scale, truth = np.random.default_rng(3), 12.0, N_WITH_MORE / N_CUSTOMERS
    law = law_of_noise(np.array([scale * said]))
    n_outside = 0
    for cut, every in rng.laplace(scale=scale, size=(1_500, 2)).tolist():
        counted = Posterior(N_WITH_MORE + cut, law), Posterior(N_CUSTOMERS + every, law)
        low, value, high = share_of(*counted, 0.95)
        assert 0 <= low <= value <= high <= 1
        n_outside += not low <= truth <= high
    assert outside[0] <= n_outside / 1_500 <= outside[1]


def test_a_share_of_next_to_nobody_may_be_any() -> None:
    law = law_of_noise(np.array([12.0]))
    assert share_of(Posterior(-30.0, law), Posterior(5.0, law), 0.95)[::2] == (0.0, 1.0)


def test_every_wire_tells_them(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT shop, SUM(amount) AS s FROM orders GROUP BY shop"
    told = [CLAMPED, ELSEWHERE, BOUND]
    with serving(service.engine) as address:
        with tacit_client.connect(address) as connection:
            result = connection.sql(sql)
            assert sorted(result.notes) == sorted(told)
            assert all(f"note: {note}" in str(result) for note in told)
            (about,) = (one for one in connection.catalog.tables() if one.name == "orders")
            assert KEPT[1:] in str(about.comment)
        with tacit_client.connect(address) as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            receipt = json.loads(cursor.fetch_arrow_table().schema.metadata[RECEIPT_KEY])
            assert sorted(receipt["notes"]) == sorted(told)
        engine = sqlalchemy.create_engine(f"tacit://{address}")
        about_table = sqlalchemy.inspect(engine).get_table_comment("orders")["text"]
        engine.dispose()
        assert KEPT[1:] in str(about_table)
        assert all(one in printed(capsys, ["query", sql, "--server", address]) for one in told)
        tables = printed(capsys, ["tables", "--server", address])
        assert KEPT[1:] in tables
        assert ", as far as epsilon 1 pays for it" in tables  # a hundredth of the budget


def test_psql_is_told_once_in_a_connection_and_its_catalog_says_the_bound(service: Service) -> None:
    with postgres_serving(service.engine) as address, _connected(address) as connection:
        heard: list[tuple[str | None, str | None]] = []
        connection.add_notice_handler(
            lambda one: heard.append((one.severity_nonlocalized, one.message_primary))
        )
        connection.execute(COUNT).fetchall()
        assert heard == [("NOTICE", BOUND)]
        heard.clear()
        connection.execute("SELECT SUM(amount) AS s FROM orders").fetchall()
        assert heard == [("NOTICE", CLAMPED)]
        heard.clear()
        connection.execute("SELECT AVG(amount) AS a FROM orders").fetchall()
        assert heard == []
        connection.execute("SET tacit.notices = on")
        connection.execute("SELECT AVG(amount) AS a FROM orders").fetchall()
        assert {CLAMPED, BOUND} <= {text for _, text in heard}
        described = connection.execute("SELECT obj_description('orders'::regclass, 'pg_class')")
        assert KEPT[1:] in str(described.fetchone())
        domains = "SELECT levels FROM data_privacy.domains WHERE column_name = 'customer'"
        assert connection.execute(domains).fetchone() == (KEPT,)


def _connected(address: str) -> psycopg.Connection[Any]:
    host, _, port = address.partition(":")
    known = f"host={host} port={port} user=ann dbname=tacit sslmode=disable"
    return psycopg.connect(known, autocommit=True)


def printed(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> str:
    """What the command line prints, on one line."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert not ended.value.code
    return " ".join(capsys.readouterr().out.split())
