"""A table of customers whose data is replaced: servers, replicas, owners at the command line."""

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from accountant.auditor.verify import verify
from accountant.ledger.limits import Payer
from accountant.ledger.open_ledger import open_ledger
from cube.block import QueryBlock
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Weight
from cube.query import counting
from cube.refusals import DataChanged, SourceUnavailable
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, QueryRequest, QueryResult
from proxy.bootstrap import Service, build
from proxy.cli import app as cli
from proxy.config.settings import load
from proxy.reporting.amounts import exact_text

CONFIG = """
[ledger]
path = "a.ledger"
[tables.customers]
source = "customers.csv"
unit = "id"
budget = "1000"
n_records_max = 10000
half_width = 2
[tables.customers.columns]
city = {kind = "category", levels = ["Oslo", "Bergen"]}
age = {kind = "integer", low = 0, high = 99}
"""
# A whole number is told from its neighbours, but for one time in ten million.
PRECISE = RequestedTarget(half_width=0.49, confidence=0.9999999)
BY_CITY = "SELECT city, COUNT(*) AS n FROM customers GROUP BY city"
BEFORE = {"Oslo": 30, "Bergen": 50}
AFTER = {"Oslo": 70, "Bergen": 20}


def write(folder: Path, cities: dict[str, int]) -> None:
    rows = [(city, place) for city, n in cities.items() for place in range(n)]
    with (folder / "customers.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [("id", "city", "age"), *((n, city, age) for n, (city, age) in enumerate(rows))]
        )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, BEFORE)
    (tmp_path / "tacit.toml").write_text(CONFIG)
    return tmp_path


@contextmanager
def served(folder: Path) -> Iterator[Service]:
    service = build(load(folder / "tacit.toml"))
    try:
        yield service
    finally:
        service.close()


def ask(service: Service, sql: str = BY_CITY, target: RequestedTarget = PRECISE) -> QueryResult:
    return service.engine.answer(QueryRequest(sql=sql, caller=LOCAL, target=target))


def counts(found: pa.Table) -> dict[str, int]:
    return {row["city"]: round(row["n"]) for row in found.to_pylist()}


def tacit(*arguments: str) -> int:
    """Run a command; its exit code."""
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    return int(ended.value.code or 0)


def renew(folder: Path, cities: dict[str, int] = AFTER) -> None:
    """The owner replaces the file, and says so."""
    write(folder, cities)
    config = str(folder / "tacit.toml")
    assert tacit("table", "renew", "customers", "--by", "ann", "--config", config) == 0


def follow(service: Service) -> None:
    """What a server does about once a second."""
    service.ledger.refresh()
    service.renewing.look()


def check_ledger(folder: Path, n_generations: int) -> None:
    with open_ledger(folder / "a.ledger") as ledger:
        verdict = verify(ledger.entries())
    assert verdict.problem is None
    (table,) = verdict.tables
    assert table.n_generations == n_generations
    assert table.spent == table.recomputed


def test_a_running_server_goes_on_with_the_new_data(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(folder) as service, served(folder) as replica:
        assert counts(ask(service).data) == BEFORE
        replica.ledger.refresh()
        assert counts(ask(replica).data) == BEFORE
        before = service.budgets()[0].spent
        renew(folder)
        told = capsys.readouterr().out
        assert "customers begins generation 2" in told
        assert "of 1000 spent" in told
        for one in (service, replica):
            follow(one)
            assert counts(ask(one).data) == AFTER
        assert service.budgets()[0].spent > before
        known = ask(replica)
        assert known.receipt is not None
        assert known.receipt.epsilon_spent == 0  # one of the two had bought it
    check_ledger(folder, 2)
    with served(folder) as service:
        assert counts(ask(service).data) == AFTER
        assert service.engine._tables["customers"].gate.history.generations.number == 2


def test_until_the_new_data_is_read_nothing_is_measured_or_answered_from_the_old(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(folder) as service:
        ask(service)
        renew(folder)
        service.ledger.refresh()
        with pytest.raises(SourceUnavailable, match="not read yet"):
            ask(service)
        write(folder, BEFORE)  # a file that the ledger knows, of another generation
        service.renewing.look()
        said = capsys.readouterr()
        assert "rows_changed" in said.out + said.err
        with pytest.raises(SourceUnavailable):
            ask(service)
        write(folder, AFTER)
        service.renewing.look()  # not again at once: every attempt reads all of the data
        assert service.engine._tables["customers"].gate.lacks_rows
        service.renewing._failed.clear()
        service.renewing.look()
        assert counts(ask(service).data) == AFTER
    check_ledger(folder, 2)


def test_what_cannot_be_read_is_logged_without_its_text(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(folder) as service:
        renew(folder)
        service.ledger.refresh()
        (folder / "customers.csv").write_text("id,city\nBodil,7\n")
        service.renewing.look()
        said = capsys.readouterr()
        assert "not_measured" in said.out + said.err
        assert "Bodil" not in said.out + said.err


def test_a_server_follows_by_itself(folder: Path) -> None:
    with served(folder) as service, service.renewing:
        ask(service)
        renew(folder)
        service.ledger.refresh()
        gate = service.engine._tables["customers"].gate
        for _ in range(600):
            if not gate.lacks_rows:
                break
            service.renewing._is_over.wait(0.05)
        assert counts(ask(service).data) == AFTER


def test_replaced_data_is_refused_until_the_owner_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = str(folder / "tacit.toml")
    with served(folder):
        pass
    assert tacit("table", "status", "--config", config) == 0
    assert "customers is in generation 1, since " in capsys.readouterr().out
    write(folder, AFTER)
    with pytest.raises(DataChanged) as refused:
        build(load(folder / "tacit.toml"))
    assert "tacit table renew customers" in (refused.value.hint or "")
    assert tacit("table", "status", "customers", "--config", config) == 1
    assert "was replaced since" in capsys.readouterr().out
    renew(folder)
    assert tacit("table", "status", "customers", "--config", config) == 0
    assert "customers is in generation 2, since " in capsys.readouterr().out
    assert tacit("table", "renew", "customers", "--config", config) == 0
    assert "is what it was" in capsys.readouterr().out
    check_ledger(folder, 2)


def test_what_cannot_be_renewed_says_why(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = folder / "tacit.toml"
    arguments = ("table", "renew", "customers", "--config", str(config))
    assert tacit(*arguments) == 1
    assert "does not know customers yet" in capsys.readouterr().err
    assert tacit("table", "status", "--config", str(config)) == 1
    assert "does not know customers yet" in capsys.readouterr().err
    with served(folder):
        pass
    write(folder, AFTER)
    config.write_text(CONFIG.replace("high = 99", "high = 120"))
    assert tacit(*arguments) == 1
    assert "with other columns" in capsys.readouterr().err
    growing = 'budget = "1000"\ngrows = {axis = "age", closed_through = 50}'
    config.write_text(CONFIG.replace('budget = "1000"', growing))
    assert tacit(*arguments) == 1
    assert "accept-changes" in capsys.readouterr().err


def test_a_report_shows_generations_and_their_sum(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(folder) as service:
        ask(service, target=RequestedTarget(half_width=20))
        half = service.budgets()[0].spent
        gate = service.engine._tables["customers"].gate
        plan = [PlannedMeasurement(QueryBlock(counting()), Weight(1))]
        waiting = gate.charge(plan, Payer("ann"), epsilon_cap=None)  # and is given up
        half += Fraction(waiting.units, UNITS_PER_EPSILON)
    renew(folder)
    with served(folder) as service:
        ask(service, target=RequestedTarget(half_width=20))
        more = service.budgets()[0].spent - half
    report = folder / "report.json"
    assert tacit("audit", "report", str(folder / "a.ledger"), "-o", str(report)) == 0
    capsys.readouterr()
    found = json.loads(report.read_text())
    begun = [one for one in found["changes"] if one["kind"] == "GENERATION BEGUN"]
    assert [(one["by"], "stays spent" in one["detail"]) for one in begun] == [("ann", True)]
    (table,) = found["tables"]
    assert [one["spent"] for one in table["generations"]] == [exact_text(half)]
    assert Fraction(table["recomputed"]) == Fraction(table["spent"]) == half + more
    page = folder / "report.html"
    assert tacit("audit", "report", str(folder / "a.ledger"), "-o", str(page)) == 0
    assert "Its data was replaced" in page.read_text()
    assert tacit("audit", "verify", str(folder / "a.ledger")) == 0
    assert "customers (2 generations)" in capsys.readouterr().out
