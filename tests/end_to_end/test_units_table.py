"""`orders.units` from the configuration to the wires: exact for units, one budget, one loss."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as adbc
import duckdb
import numpy as np
import pytest

from accountant.auditor.verify import verify
from accountant.ledger.credentials import Role
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from cube.refusals import (
    BudgetExhausted,
    ConfigurationInvalid,
    LedgerMismatch,
    LimitReached,
    NameTaken,
    UnknownName,
)
from planner.workload import RequestedTarget
from proxy import bootstrap
from proxy.admin.ledger_admin import LimitChange, change_limit
from proxy.api.requests import LOCAL, Caller, QueryRequest
from proxy.bootstrap import Service, build
from proxy.cli import app as cli
from proxy.config.settings import load
from tests.support.fakes import NoNoise
from tests.support.postgres import missing
from tests.support.postgres_wire import postgres_serving
from tests.support.serving import serving

CANARY = "8675309"
COUNT = "SELECT COUNT(*) AS n FROM {0}"
EXPLAIN = "EXPLAIN PRIVACY SELECT COUNT(DISTINCT customer) AS n FROM orders"
VIEW = "SELECT * FROM data_privacy.{0}"
VIEWS = ("budgets", "domains", "history", "losses")
PER_UNIT = 'per_unit = ["city", "premium"]\n'
ORDERS = """[ledger]
path = "orders.ledger"
[tables.orders]
source = "orders.csv"
unit = "customer"
rows_per_unit_max = 3
{per_unit}budget = "{budget}"
n_records_max = 20000
half_width = 50
[tables.orders.columns.channel]
kind = "category"
levels = ["web", "shop"]
[tables.orders.columns.city]
kind = "category"
levels = ["Oslo", "Bergen", "Voss"]
null = true
[tables.orders.columns.premium]
kind = "boolean"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Orders of a thousand customers; of one in twenty, by a channel that has no level."""
    rng = np.random.default_rng(5)
    lines = ["customer,channel,city,premium"]
    for number in range(1000):
        city = ("Oslo", "Oslo", "Bergen", "Voss", "")[rng.integers(5)]
        premium = ("true", "false")[rng.integers(2)]
        channels = ("fax",) if number % 20 == 0 else ("web", "shop", "fax")
        for _ in range(rng.integers(1, 9)):
            channel = channels[rng.integers(len(channels))]
            lines.append(f"c{CANARY}{number},{channel},{city},{premium}")
    (tmp_path / "orders.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


@contextmanager
def served(folder: Path, budget: str = "10", per_unit: str = PER_UNIT) -> Iterator[Service]:
    text = ORDERS.format(budget=budget, per_unit=per_unit)
    (folder / "tacit.toml").write_text(text)
    service = build(load(folder / "tacit.toml"))
    try:
        yield service
    finally:
        service.close()


@pytest.fixture
def noiseless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "SystemNoise", NoNoise)


def ask(service: Service, sql: str, half_width: float = 50) -> list[dict[str, Any]]:
    target = RequestedTarget(half_width=half_width)
    answer = service.engine.answer(QueryRequest(sql=sql, caller=LOCAL, target=target))
    rows: list[dict[str, Any]] = answer.data.to_pylist()
    return rows


def spent(service: Service) -> Fraction:
    (both,) = {one.spent for one in service.budgets()}
    return both


def true_rows(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    """What DuckDB says of the same file, with a row for each customer as `units`."""
    with duckdb.connect() as connection:
        rows = connection.read_csv(folder / "orders.csv", header=True, na_values="")
        columns = "customer, any_value(city) AS city, any_value(premium) AS premium"
        rows.aggregate(columns, "customer").create_view("units")
        return connection.execute(sql).fetchall()


@pytest.mark.usefixtures("noiseless")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM {0}",
        "SELECT city, COUNT(*) AS n FROM {0} GROUP BY city ORDER BY city NULLS LAST",
        "SELECT city, premium, COUNT(*) AS n FROM {0} GROUP BY ALL ORDER BY 1 NULLS LAST, 2",
        "SELECT COUNT(*) AS n FROM {0} WHERE city IN ('Oslo', 'Voss') AND NOT premium",
        "SELECT COUNT(*) AS n FROM {0} WHERE city IS NULL OR premium",
        "SELECT CASE city WHEN 'Oslo' THEN 1 END AS i, COUNT(*) FROM {0} GROUP BY i ORDER BY i",
        "SELECT city, COUNT(*) FROM {0} WHERE premium GROUP BY 1 HAVING COUNT(*) > 110 ORDER BY 1",
        "SELECT COUNT(DISTINCT customer) AS n FROM {0} WHERE premium",
    ],
)
def test_answers_are_about_every_unit_once(folder: Path, sql: str) -> None:
    """Without noise, those of DuckDB: whatever rows of a unit are left out of the other table."""
    with served(folder) as service:
        found = ask(service, sql.format("orders.units"))
    assert [tuple(row.values()) for row in found] == true_rows(folder, sql.format("units"))


def test_one_grouping_answers_what_is_a_union_of_its_groups(folder: Path) -> None:
    """These are rows: they share a history, which counts of distinct units do not."""
    with served(folder) as service:
        ask(service, "SELECT city, premium, COUNT(*) AS n FROM orders.units GROUP BY ALL", 10)
        before = spent(service)
        for rest in (" WHERE city = 'Oslo'", " WHERE NOT premium OR city IS NULL", ""):
            assert ask(service, COUNT.format("orders.units") + rest, 30)
        assert spent(service) == before


def test_explain_names_it_where_it_counts_the_same_people_better(folder: Path) -> None:
    """Not where the count depends on orders, nor where it is of those with orders left out."""
    counts = EXPLAIN
    with served(folder) as service:
        for better in ("", " WHERE premium", " WHERE city = 'Oslo' GROUP BY premium"):
            (row, *_) = ask(service, counts + better)
            assert "COUNT(*) FROM orders.units counts every customer" in row["advice"]
        cut = counts.replace(" AS n", " FILTER (WHERE WAS_CUT(customer)) AS n")
        for other in (f"{counts} WHERE channel = 'web'", f"{counts} GROUP BY channel", cut):
            assert {row["advice"] for row in ask(service, other)} == {None}
    own = folder / "own"
    own.mkdir()
    shutil.copy(folder / "orders.csv", own)
    with served(own, per_unit="") as service:
        assert {row["advice"] for row in ask(service, counts)} == {None}


def test_both_tables_spend_from_one_budget_and_one_limit(folder: Path) -> None:
    """A unit is in both, so what both spend adds up: neither goes on once it is spent together."""
    with served(folder, budget="1") as service:
        ask(service, COUNT.format("orders"), 15)
        rows_alone = spent(service)
        assert float(rows_alone) == pytest.approx(3 * np.log(20) / 15, rel=0.01)
        ask(service, COUNT.format("orders.units"), 15)
        assert float(spent(service)) == pytest.approx(4 * np.log(20) / 15, rel=0.01)
        for table, half_width in (("orders", 7), ("orders.units", 3)):
            with pytest.raises(BudgetExhausted):
                ask(service, COUNT.format(table), half_width)
        change = LimitChange(subject="analyst:local", epsilon="0.82")
        change_limit(service.ledger, "orders", change, by="owner")
        with pytest.raises(LimitReached):
            ask(service, COUNT.format("orders.units"), 10)
        verdict = verify(service.ledger.entries())
    assert verdict.problem is None
    (shared,) = verdict.shared_budgets.values()
    assert sum(one.spent for one in shared) <= 1


def test_a_ledger_that_knew_the_rows_alone_goes_on_with_both(folder: Path) -> None:
    """What was spent on them counts; without the units, the budget has its name in the file."""
    with served(folder, per_unit="") as service:
        ask(service, COUNT.format("orders"))
        before = spent(service)
    with served(folder) as service:
        assert spent(service) == before > 0
        ask(service, COUNT.format("orders.units"))
        both = spent(service)
        assert both > before
    with pytest.raises(LedgerMismatch, match="budget orders"), served(folder, per_unit=""):
        pass
    with served(folder) as service:
        assert spent(service) == both
        assert verify(service.ledger.entries()).problem is None


def test_an_attribute_that_varies_is_refused_before_the_ledger_is_told(folder: Path) -> None:
    with served(folder, per_unit="") as service:
        n_entries = len(list(service.ledger.entries()))
    varying = PER_UNIT.replace("city", "channel")
    with pytest.raises(ConfigurationInvalid) as refused, served(folder, per_unit=varying):
        pass
    said = refused.value.explain()
    assert "tables.orders.per_unit: channel is not the same in all rows of some unit" in said
    assert "fax" not in said
    assert CANARY not in said
    with open_ledger(folder / "orders.ledger") as ledger:
        assert len(list(ledger.entries())) == n_entries


def test_both_go_on_with_data_that_was_replaced_or_neither(folder: Path) -> None:
    """One command for both; where a column now varies, the ledger is told of neither."""
    with served(folder) as service:
        ask(service, COUNT.format("orders.units"))
        before = spent(service)
    orders, renew = folder / "orders.csv", ["table", "renew", "orders", "--config"]
    whole = orders.read_text()
    orders.write_text(whole + "new,web,Oslo,true\nnew,web,Voss,true\n")
    assert ended([*renew, str(folder / "tacit.toml")]) != 0
    with open_ledger(folder / "orders.ledger") as ledger:
        for table in ("orders", "orders.units"):
            assert ledger.history(table).generations.number == 1
    orders.write_text(whole + "new,web,Oslo,true\nnew,web,Oslo,true\n")
    assert ended([*renew, str(folder / "tacit.toml")]) == 0
    with served(folder) as service:
        assert spent(service) == before
        for table in ("orders", "orders.units"):
            assert service.ledger.history(table).generations.number == 2
            ask(service, COUNT.format(table))
        assert spent(service) > before
        assert verify(service.ledger.entries()).problem is None


def test_units_that_were_never_served_do_not_stand_in_the_way(folder: Path) -> None:
    """The owner replaces the data, and says `per_unit` on the same day."""
    with served(folder, per_unit=""):
        pass
    with (folder / "orders.csv").open("a") as orders:
        orders.write("new,web,Oslo,true\n")
    (folder / "tacit.toml").write_text(ORDERS.format(budget="10", per_unit=PER_UNIT))
    assert ended(["table", "renew", "orders", "--config", str(folder / "tacit.toml")]) == 0
    with served(folder) as service:
        assert service.ledger.history("orders").generations.number == 2
        assert service.ledger.history("orders.units").generations.number == 1


def ended(arguments: list[str]) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    return int(caught.value.code or 0)


def test_no_unit_is_named_in_a_ledger_or_an_answer(folder: Path) -> None:
    with served(folder) as service:
        ask(service, "SELECT city, COUNT(*) AS n FROM orders.units GROUP BY city")
        shown = repr([ask(service, VIEW.format(view)) for view in VIEWS])
        written = repr(list(service.ledger.entries()))
    files = [path.read_bytes() for path in folder.rglob("*") if path.name.startswith("orders.l")]
    assert files
    assert all(CANARY.encode() not in text for text in files)
    assert CANARY not in shown + written


def test_clients_find_it_and_ask_it(folder: Path) -> None:
    """Under a schema with the other table's name, as Flight SQL and PostgreSQL's catalog say."""
    by_city = "SELECT city, COUNT(*) AS n FROM orders.units GROUP BY city ORDER BY city"
    with served(folder) as service:
        with (
            serving(service.engine) as address,
            adbc.connect(f"grpc://{address}", autocommit=True) as connection,
        ):
            (catalog,) = connection.adbc_get_objects().read_all().to_pylist()
            found = {
                schema["db_schema_name"]: [one["table_name"] for one in schema["db_schema_tables"]]
                for schema in catalog["catalog_db_schemas"]
            }
            assert (found["public"], found["orders"]) == (["orders"], ["units"])
            columns = connection.adbc_get_table_schema("units", db_schema_filter="orders")
            assert columns.names == ["city", "premium"]
            with connection.cursor() as cursor:
                cursor.execute(by_city)
                counts = cursor.fetchall()
        with postgres_serving(service.engine) as address:
            assert "orders|units|table" in psql(address, r"\dt orders.*")
            assert "premium|boolean" in psql(address, r"\d orders.units")
            shown = psql(address, by_city).splitlines()
    assert len(counts) == 4
    assert shown[1:-1] == [f"{city or ''}|{round(n)}" for city, n in counts]


def psql(address: str, command: str) -> str:
    program = shutil.which("psql")
    if program is None:
        missing("there is no psql on this machine")
    uri = f"postgresql://ann@{address}/tacit"
    done = subprocess.run(  # noqa: S603 - a program that was looked for
        [program, "-X", "-A", uri, "-c", command],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout


def test_a_synthetic_table_can_be_made_of_it(folder: Path) -> None:
    made = "CREATE SYNTHETIC TABLE {0} FROM orders.units WITH (epsilon => 1)"
    with served(folder) as service:
        ask(service, made.format("demo"))
        assert 0 < spent(service) <= 1
        (row,) = ask(service, "SELECT COUNT(*) AS n FROM demo WHERE city = 'Oslo'")
        assert 200 < row["n"] < 600
        ask(service, "DROP SYNTHETIC TABLE orders.units.demo")
        with pytest.raises(NameTaken, match="units is taken"):
            ask(service, "CREATE SYNTHETIC TABLE units FROM orders")


@pytest.mark.parametrize(
    ("name", "said"),
    [("units", "Did you mean 'orders.units'"), ("orders.unit", "Did you mean 'units'")],
)
def test_a_name_that_is_nearly_its_own_is_answered_with_its_own(
    folder: Path, name: str, said: str
) -> None:
    with served(folder) as service:
        with pytest.raises(UnknownName) as refused:
            ask(service, COUNT.format(name))
        assert said in refused.value.explain()
        for own in ('"orders"."units"', '"orders.units"', "Orders.UNITS", "main.orders"):
            ask(service, COUNT.format(own))


def test_who_may_see_one_table_hears_nothing_of_the_other(folder: Path) -> None:
    """A token opens each by its own name."""
    bob = Caller(Payer("bob"), Role.ANALYST, ("orders",))
    with served(folder) as service:
        assert [one.schema.table for one in service.engine.tables(bob)] == ["orders"]
        with pytest.raises(UnknownName):
            service.engine.answer(QueryRequest(sql=COUNT.format("orders.units"), caller=bob))
        found = service.engine.answer(QueryRequest(sql=EXPLAIN, caller=bob)).data.to_pylist()
        assert {row["advice"] for row in found} == {None}
