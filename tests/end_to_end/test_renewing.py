"""A table of customers whose data is replaced: servers, replicas, owners at the command line."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.ledger.limits import Payer
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Weight
from cube.query import QueryBlock, counting
from cube.refusals import (
    CostAboveCap,
    DataChanged,
    SourceUnavailable,
)
from planner.workload import Fallback, RequestedTarget
from proxy.api.requests import LOCAL
from proxy.bootstrap import build
from proxy.config.settings import load
from proxy.shared.amounts import exact_text
from tests.support.renewed_customers import (
    AFTER,
    BEFORE,
    CONFIG,
    PRECISE,
    ask,
    check_ledger,
    counts,
    follow,
    renew,
    served,
    tacit,
    write,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, BEFORE)
    (tmp_path / "tacit.toml").write_text(CONFIG)
    return tmp_path


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
        with pytest.raises(SourceUnavailable, match="has not read the new data yet"):
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
    assert "has been replaced since" in capsys.readouterr().out
    renew(folder)
    assert tacit("table", "status", "customers", "--config", config) == 0
    assert "customers is in generation 2, since " in capsys.readouterr().out
    assert tacit("table", "renew", "customers", "--config", config) == 0
    assert "has not changed" in capsys.readouterr().out
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
    others = CONFIG.partition("[tables.customers]")[2].replace("tables.customers", "tables.others")
    (folder / "others.csv").write_text("id,city,age\n1,Oslo,7\n")
    others = others.replace("customers.csv", "others.csv")
    config.write_text(
        CONFIG.replace("[tables.customers]", f"[tables.others]{others}[tables.customers]", 1)
    )
    assert tacit("table", "status", "--config", str(config)) == 1
    said = capsys.readouterr()
    assert "does not know others yet" in said.err
    assert "customers is in generation 1, since " in said.out, "which is behind it"
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


def test_a_synthetic_table_is_of_the_generation_that_it_was_made_of(folder: Path) -> None:
    """It stays released, and is reported on beside the history that it was made of."""
    make = "CREATE SYNTHETIC TABLE {} FROM customers WITH (epsilon => 20)"
    model = replace(
        PRECISE, half_width=0.05, confidence=0.95, epsilon_cap=Fraction(0), fallback=Fallback.MODEL
    )
    with served(folder) as service:
        ask(service, make.format("made"))
        (record,) = service.engine.synthetic.known(LOCAL)
        assert record.generation == 1
        assert counts(ask(service, target=model).data)  # the model answers what cannot be paid
        report = service.engine.synthetic.report(LOCAL, "made")
        renew(folder)
        follow(service)
        assert ask(service, "SELECT COUNT(*) AS n FROM made").data.num_rows == 1
        with pytest.raises(CostAboveCap):  # and nothing of before answers for the new data
            ask(service, target=model)
        again = service.engine.synthetic.report(LOCAL, "made")
        assert len(again) > len(report) / 2
        ask(service, make.format("anew"))
        assert {one.name: one.generation for one in service.engine.synthetic.known(LOCAL)} == {
            "made": 1,
            "anew": 2,
        }
        assert counts(ask(service, target=model).data)
        assert service.engine.synthetic.report(LOCAL, "anew")
    check_ledger(folder, 2)
