"""A table of customers whose data is replaced: servers, replicas, owners at the command line."""

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from accountant.auditor.verify import verify
from accountant.ledger import ledger as ledgers
from accountant.ledger.credentials import Role
from accountant.ledger.limits import Payer
from accountant.ledger.open_ledger import open_ledger
from cube.block import QueryBlock
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Weight
from cube.query import counting
from cube.refusals import (
    CostAboveCap,
    DataChanged,
    GenerationOver,
    InvalidRequest,
    OutsideDomain,
    SourceUnavailable,
    TargetNotReached,
    UnknownName,
    UnsupportedSql,
)
from planner.fallback import Fallback
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, BatchRequest, QueryRequest, QueryResult
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


FIRST, SECOND, THIRD = "2026-08-03", "2026-09-10", "2026-10-02"
AS_OF = "SELECT city, COUNT(*) AS n FROM customers AS OF '{}' GROUP BY city"
AND_NOW = (
    "SELECT (SELECT COUNT(*) FROM customers) "
    "- (SELECT COUNT(*) FROM customers AS OF '{}') AS difference"
)
FINALLY = {"Oslo": 10, "Bergen": 90}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The day of the ledger's clock, which a test turns."""
    day = [FIRST]
    monkeypatch.setattr(ledgers, "utc_now", lambda: f"{day[0]}T09:00:00.000+00:00")
    return day


@pytest.fixture
def renewed(folder: Path, clock: list[str], capsys: pytest.CaptureFixture[str]) -> Path:
    """Three generations; of the first and the third the counts are known."""
    with served(folder) as service:
        ask(service)
        ask(service, "SELECT AVG(age) AS a FROM customers", RequestedTarget(half_width=3))
    clock[0] = SECOND
    renew(folder)
    clock[0] = THIRD
    renew(folder, FINALLY)
    with served(folder) as service:
        ask(service)
    capsys.readouterr()
    return folder


@pytest.mark.parametrize(
    ("day", "right"),
    [
        (FIRST, BEFORE),
        ("2026-09-09", BEFORE),
        ("2026-09-10T08:59", BEFORE),
        (THIRD, FINALLY),
        ("2026-11-01", FINALLY),
    ],
)
def test_an_earlier_generation_answers_as_of_a_day_of_its_own(
    renewed: Path, day: str, right: dict[str, int]
) -> None:
    with served(renewed) as service:
        before = service.budgets()[0].spent
        ask(service, "EXPLAIN " + AS_OF.format(day))
        for found in (
            ask(service, AS_OF.format(day)),
            ask(service, target=replace(PRECISE, as_of=day)),
        ):
            assert counts(found.data) == right
            assert found.receipt is not None
            assert found.receipt.epsilon_spent == 0
            is_over = right == BEFORE
            note = "customers, generation 1: its data was replaced on 2026-09-10."
            assert (note in found.receipt.notes) == is_over
            assert found.receipt.table == ("customers, generation 1" if is_over else "customers")
        if right == BEFORE:
            then = AND_NOW.format(day)
            difference = ask(service, then, RequestedTarget(half_width=5))
            assert round(difference.data.column(0)[0].as_py()) == 20
        assert service.budgets()[0].spent == before
        service.write_usage()  # under the name that the ledger knows
    check_ledger(renewed, 3)


def test_what_was_not_asked_then_is_refused_with_what_would_be_free(renewed: Path) -> None:
    with served(renewed) as service:
        before = service.budgets()[0]
        average = "SELECT AVG(age) AS a FROM customers AS OF '2026-08-03'"
        ask(service, average, RequestedTarget(half_width=3))
        for sql, target in (
            (average, RequestedTarget(half_width=0.01)),
            (AS_OF.format(FIRST), RequestedTarget(half_width=0.01)),
            ("SELECT COUNT(*) FROM customers AS OF '2026-08-03' WHERE age = 7", PRECISE),
            (AS_OF.format(SECOND), RequestedTarget(half_width=50)),  # nothing was asked of it
        ):
            for asked in (sql, f"EXPLAIN {sql}"):
                with pytest.raises((GenerationOver, TargetNotReached)) as refused:
                    ask(service, asked, target)
                assert "is over" in refused.value.message
        with pytest.raises(GenerationOver) as refused:
            ask(service, AS_OF.format(FIRST), RequestedTarget(half_width=0.01))
        assert "Free right now: half_width 0." in (refused.value.hint or "")
        fallen = ask(
            service,
            AS_OF.format(FIRST),
            replace(PRECISE, half_width=0.01, fallback=Fallback.HISTORY),
        )
        assert counts(fallen.data) == BEFORE
        assert service.budgets()[0] == before
    check_ledger(renewed, 3)


def test_days_on_which_there_was_no_such_table_are_refused(renewed: Path) -> None:
    with served(renewed) as service:
        for moment, error, says in (
            ("2026-08-02", OutsideDomain, "served from 2026-08-03 on"),
            ("2999-01-01", OutsideDomain, "still to come"),
            ("soon", UnsupportedSql, "not a day"),
        ):
            with pytest.raises(error, match=says):
                ask(service, AS_OF.format(moment))
        with pytest.raises(OutsideDomain, match=r"tacit\.as_of = 7 is no day"):
            ask(service, target=replace(PRECISE, as_of="7"))
        with pytest.raises(UnknownName):
            ask(service, 'SELECT COUNT(*) FROM "customers, generation 1"')
        with pytest.raises(InvalidRequest, match="was replaced"):
            service.engine.plan_batch(
                BatchRequest(sql=AS_OF.format(FIRST), caller=LOCAL, target=PRECISE, buy=False)
            )
    assert "generation" not in str([one.schema.table for one in service.engine.tables(LOCAL)])


def test_analysts_who_do_not_see_a_history_are_not_answered_from_an_earlier_one(
    renewed: Path,
) -> None:
    config = renewed / "tacit.toml"
    config.write_text(CONFIG.replace("half_width = 2", 'half_width = 2\nhistory = "private"'))
    analyst = replace(LOCAL, role=Role.ANALYST)
    with served(renewed) as service:
        request = QueryRequest(sql=AS_OF.format(FIRST), caller=LOCAL, target=PRECISE)
        assert counts(service.engine.answer(request).data) == BEFORE
        with pytest.raises(OutsideDomain, match="served from 2026-10-02 on"):
            service.engine.answer(replace(request, caller=analyst))
        of_session = QueryRequest(sql=BY_CITY, caller=analyst, target=replace(PRECISE, as_of=FIRST))
        with pytest.raises(OutsideDomain, match="served from 2026-10-02 on"):
            service.engine.answer(of_session)  # and not as if nothing had been said


def test_a_running_server_has_earlier_answers_as_soon_as_a_generation_begins(
    folder: Path, clock: list[str]
) -> None:
    with served(folder) as service:
        ask(service)
        with pytest.raises(UnsupportedSql, match="does not grow"):
            ask(service, AS_OF.format(FIRST))
        clock[0] = SECOND
        renew(folder)
        service.ledger.refresh()  # and the new data is not read
        assert counts(ask(service, AS_OF.format(FIRST)).data) == BEFORE
        follow(service)
        assert counts(ask(service).data) == AFTER
        assert counts(ask(service, AS_OF.format(FIRST)).data) == BEFORE
        assert counts(ask(service, AS_OF.format(SECOND)).data) == AFTER


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
