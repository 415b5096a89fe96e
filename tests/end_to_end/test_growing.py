"""An orders table that gets new rows: servers, replicas, owners at the command line, late rows."""

import csv
import datetime as dt
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from accountant.auditor.verify import verify
from accountant.ledger.opening import open_ledger
from cube.refusals import ConfigurationInvalid, SourceUnavailable
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, SOURCE_MEASURED, QueryRequest, QueryResult
from proxy.bootstrap import Service, build
from proxy.cli import app as cli
from proxy.config.columns import Closing
from proxy.config.settings import load

LOW = dt.date(2026, 9, 1)
N_UNITS, N_DAYS = 40, 60
CONFIG = """
[ledger]
path = "a.ledger"
[tables.orders]
source = "orders.csv"
unit = "customer"
rows_per_unit_max = 3
grows = {{axis = "day", {closed}}}
budget = "1000"
n_records_max = 10000
half_width = 2
[tables.orders.columns]
day = {{kind = "date", low = 2026-09-01, high = 2026-12-31}}
city = {{kind = "category", levels = ["Oslo", "Bergen"]}}
"""
SEPTEMBER = "closed_through = 2026-09-30"
# A whole number is told from its neighbours, but for one time in ten million.
PRECISE = RequestedTarget(half_width=0.49, confidence=0.9999999)

Order = tuple[int, dt.date, str]


def orders(n_days: int) -> list[Order]:
    """A few orders a day; a customer's come on different days."""
    return [
        (
            number % N_UNITS,
            LOW + dt.timedelta(days=number % n_days),
            ("Oslo", "Bergen")[number % 3 > 0],
        )
        for number in range(2 * n_days)
    ]


def write(folder: Path, rows: Sequence[Order]) -> None:
    with (folder / "orders.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("customer", "day", "city"), *rows])


def kept(rows: Sequence[Order], last: dt.date) -> list[Order]:
    """The first three orders of each customer until a day; days differ, so that these are clear."""
    found = []
    for unit in range(N_UNITS):
        own = sorted(
            (row for row in rows if row[0] == unit and row[1] <= last), key=lambda row: row[1]
        )
        found += own[:3]
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, orders(N_DAYS))
    (tmp_path / "tacit.toml").write_text(CONFIG.format(closed=SEPTEMBER))
    return tmp_path


@contextmanager
def served(folder: Path, closed: str = SEPTEMBER) -> Iterator[Service]:
    (folder / "tacit.toml").write_text(CONFIG.format(closed=closed))
    service = build(load(folder / "tacit.toml"))
    try:
        yield service
    finally:
        service.close()


def ask(service: Service, sql: str, target: RequestedTarget = PRECISE) -> QueryResult:
    return service.engine.answer(QueryRequest(sql=sql, caller=LOCAL, target=target))


def counts(found: pa.Table) -> dict[str, int]:
    return {row["city"]: round(row["n"]) for row in found.to_pylist()}


def expected(rows: Sequence[Order]) -> dict[str, int]:
    cities = [city for *_, city in rows]
    return {city: cities.count(city) for city in ("Oslo", "Bergen")}


BY_CITY = "SELECT city, COUNT(*) AS n FROM orders GROUP BY city"


def tacit(*arguments: str) -> int:
    """Run a command; its exit code."""
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    return int(ended.value.code or 0)


def check_ledger(folder: Path) -> None:
    with open_ledger(folder / "a.ledger") as ledger:
        assert verify(ledger._store.entries_after(0)).problem is None


def test_every_query_means_up_to_the_horizon(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = orders(N_DAYS)
    with served(folder) as service:
        found = ask(service, BY_CITY)
        assert counts(found.data) == expected(kept(rows, dt.date(2026, 9, 30)))
        assert found.receipt is not None
        assert "orders has rows through day 2026-09-30." in found.receipt.notes
    assert (
        tacit(
            "table",
            "advance",
            "orders",
            "--to",
            "2026-10-20",
            "--config",
            str(folder / "tacit.toml"),
        )
        == 0
    )
    assert "through 2026-10-20" in capsys.readouterr().out
    with served(folder) as service:
        found = ask(service, BY_CITY)
        assert counts(found.data) == expected(kept(rows, dt.date(2026, 10, 20)))
        again = ask(
            service,
            BY_CITY.replace(" GROUP", " AS OF '2026-09-30' GROUP"),
        )
        assert again.receipt is not None
        assert again.receipt.epsilon_spent == 0  # what was measured in September is about September
        assert counts(again.data) == expected(kept(rows, dt.date(2026, 9, 30)))
    check_ledger(folder)


def test_replicas_follow_an_advance_and_share_what_was_measured(folder: Path) -> None:
    rows = orders(N_DAYS)
    with served(folder) as one, served(folder) as other:
        ask(one, BY_CITY)
        gate = one.engine._tables["orders"].gate
        assert gate.advance(40, "owner")  # through October 10
        found = ask(one, BY_CITY)
        assert counts(found.data) == expected(kept(rows, dt.date(2026, 10, 10)))
        # The other one has not heard, and begins with September; before it buys, it looks again.
        caught_up = ask(other, BY_CITY)
        assert counts(caught_up.data) == expected(kept(rows, dt.date(2026, 10, 10)))
        assert caught_up.receipt is not None
        assert caught_up.receipt.epsilon_spent == 0
        week = "SELECT city, COUNT(*) AS n FROM orders WHERE day > '2026-10-03' GROUP BY city"
        measured = ask(other, week)
        assert measured.receipt is not None
        assert measured.receipt.columns[0].source == SOURCE_MEASURED  # days with budget left
        inside = [row for row in kept(rows, dt.date(2026, 10, 10)) if row[1] > dt.date(2026, 10, 3)]
        assert counts(measured.data) == expected(inside)
    check_ledger(folder)


def test_late_rows_are_noticed_and_history_goes_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = orders(N_DAYS)
    config = str(folder / "tacit.toml")
    with served(folder) as service:
        known = ask(service, BY_CITY)
    write(folder, [*rows, (N_UNITS + 1, dt.date(2026, 9, 12), "Oslo")])
    with served(folder) as service:
        again = ask(service, BY_CITY)
        assert again.data.equals(known.data)
        with pytest.raises(SourceUnavailable, match="cannot be measured") as refused:
            ask(service, "SELECT COUNT(*) AS n FROM orders WHERE day = '2026-09-12'")
        assert "2026-09-12" not in str(refused.value)
    assert tacit("table", "status", "--config", config) == 1
    assert "changed since it was closed: 2026-09-01 to 2026-09-30" in capsys.readouterr().out
    assert tacit("table", "advance", "orders", "--to", "2026-10-20", "--config", config) == 1
    assert "have changed" in capsys.readouterr().err
    write(folder, rows)
    assert tacit("table", "status", "--config", config) == 0
    assert tacit("table", "advance", "orders", "--to", "2026-10-20", "--config", config) == 0
    check_ledger(folder)


def test_the_clock_moves_the_horizon(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = orders(N_DAYS)
    through = dt.date(2026, 9, 20)
    monkeypatch.setattr(Closing, "horizon", lambda *_: (through - LOW).days + 1)
    with served(folder, 'closed_after = "3 days"') as service:
        assert counts(ask(service, BY_CITY).data) == expected(kept(rows, through))
        through = dt.date(2026, 9, 25)
        service.advancing.look()
        assert counts(ask(service, BY_CITY).data) == expected(kept(rows, through))
        service.advancing.look()  # nothing is due
    check_ledger(folder)


@pytest.mark.parametrize(
    ("now", "last"),
    [
        ("2026-10-05T00:00:00+00:00", "2026-10-01"),
        ("2026-10-04T23:59:59+00:00", "2026-09-30"),
        ("2026-10-05T01:00:00+02:00", "2026-09-30"),
        ("2030-01-01T00:00:00+00:00", "2026-12-31"),
    ],
)
def test_a_day_is_closed_so_long_after_it_ended(folder: Path, now: str, last: str) -> None:
    (folder / "tacit.toml").write_text(CONFIG.format(closed='closed_after = "3 days"'))
    (table,) = load(folder / "tacit.toml").tables
    assert table.closing is not None
    horizon = table.closing.horizon(table.schema, dt.datetime.fromisoformat(now))
    assert LOW + dt.timedelta(days=horizon - 1) == dt.date.fromisoformat(last)


@pytest.mark.parametrize(
    ("closed", "says"),
    [
        ("closed_through = 2026-08-01", "before the first level"),
        ("closed_through = 7", "a date, not 7"),
        ('closed_after = "soon"', "a duration"),
        ('closed_through = 2026-09-30, closed_after = "3 days"', "either closed_through"),
        ("", "either closed_through"),
    ],
)
def test_a_declaration_that_cannot_be_is_a_problem(folder: Path, closed: str, says: str) -> None:
    (folder / "tacit.toml").write_text(CONFIG.format(closed=closed).replace(", }", "}"))
    with pytest.raises(ConfigurationInvalid, match=says):
        load(folder / "tacit.toml")


@pytest.mark.parametrize(
    ("axis", "says"), [("city", "date, timestamp or"), ("nowhere", "date, timestamp or")]
)
def test_it_grows_along_an_ordered_column(folder: Path, axis: str, says: str) -> None:
    text = CONFIG.format(closed=SEPTEMBER).replace('axis = "day"', f'axis = "{axis}"')
    (folder / "tacit.toml").write_text(text)
    with pytest.raises(ConfigurationInvalid, match=says):
        load(folder / "tacit.toml")


def test_what_the_commands_refuse(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = str(folder / "tacit.toml")
    assert tacit("table", "advance", "orders", "--to", "2026-10-20", "--config", config) == 1
    assert "does not know orders yet" in capsys.readouterr().err
    with served(folder):
        pass
    for arguments, says in (
        (("orders", "--to", "2026-09-30"), "only moves forward"),
        (("orders", "--to", "soon"), "not a level of day"),
        (("people", "--to", "2026-10-20"), "no table people"),
    ):
        assert tacit("table", "advance", *arguments, "--config", config) == 1
        assert says in capsys.readouterr().err


def test_a_file_that_cannot_be_read_stops_the_start(folder: Path) -> None:
    (folder / "orders.csv").write_text("customer,day\n1,2026-09-01\n")
    with pytest.raises(ConfigurationInvalid, match="no such column"), served(folder):
        pass


def test_accepted_changes_are_answered_and_nothing_else_is_measured_anew(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = orders(N_DAYS)
    config = str(folder / "tacit.toml")
    october = "SELECT city, COUNT(*) AS n FROM orders WHERE day > '2026-09-30' GROUP BY city"
    with served(folder, "closed_through = 2026-10-20") as service:
        before = ask(service, BY_CITY)
        apart = ask(service, october)
        late = [*rows, *((N_UNITS + unit, dt.date(2026, 9, 12), "Oslo") for unit in range(5))]
        write(folder, late)
        missing = ("table", "accept-changes", "orders", "--period", "2026-10", "--config", config)
        assert tacit(*missing) == 1
        assert "other periods" in capsys.readouterr().err
        accepted = ("table", "accept-changes", "orders", "--period", "2026-09", "--config", config)
        assert tacit(*accepted) == 0
        assert "2026-09-01 through 2026-09-30 as they are now" in capsys.readouterr().out
        assert tacit(*accepted) == 0
        assert "No closed row" in capsys.readouterr().out
        service.ledger.refresh()
        again = ask(service, october)  # October has not changed
        assert again.data.equals(apart.data)
        now = ask(service, BY_CITY)
        assert now.receipt is not None
        assert now.receipt.columns[0].source == SOURCE_MEASURED
        assert counts(now.data) == expected(kept(rows, dt.date(2026, 10, 20)) + late[len(rows) :])
        assert counts(now.data) != counts(before.data)
    with served(folder, "closed_through = 2026-10-20") as service:
        known = ask(service, BY_CITY)
        assert known.data.equals(now.data)
        assert known.receipt is not None
        assert known.receipt.epsilon_spent == 0
    check_ledger(folder)


def test_a_report_says_how_far_a_table_is_readable_and_what_was_accepted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, rows = str(folder / "tacit.toml"), orders(N_DAYS)
    with served(folder) as service:
        ask(service, BY_CITY, RequestedTarget(half_width=50))
    write(folder, [*rows, (N_UNITS + 1, dt.date(2026, 9, 12), "Oslo")])
    period = ("--period", "2026-09", "--by", "ann")
    assert tacit("table", "accept-changes", "orders", *period, "--config", config) == 0
    report = folder / "report.json"
    assert tacit("audit", "report", str(folder / "a.ledger"), "-o", str(report)) == 0
    capsys.readouterr()
    said = [
        (one["kind"], one["by"], one["detail"]) for one in json.loads(report.read_text())["changes"]
    ]
    assert ("horizon advanced", "closed_through", "its first 30 levels are readable") in said
    assert said[-1] == (
        "CHANGES ACCEPTED",
        "ann",
        "closed rows of its levels 1 to 30 are others now; ε 0 more is spent",
    )


def test_whatever_fails_the_clock_goes_on_and_says_nothing_of_the_rows(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    through = [dt.date(2026, 9, 20)]
    monkeypatch.setattr(Closing, "horizon", lambda *_: (through[0] - LOW).days + 1)
    with served(folder, 'closed_after = "3 days"') as service:
        gate = service.engine._tables["orders"].gate
        through[0] = dt.date(2026, 9, 25)
        n_tried = []

        def fails(*_: object) -> bool:
            n_tried.append(1)
            raise ZeroDivisionError("customer 7 of Oslo")

        with monkeypatch.context() as patched:
            patched.setattr(type(gate), "advance", fails)
            service.advancing.look()
            service.advancing.look()  # not again at once: every attempt reads all of the data
        assert len(n_tried) == 1
        said = capsys.readouterr()
        assert "not_advanced" in said.out + said.err
        assert "customer 7" not in said.out + said.err
        service.advancing._not_before.clear()
        service.advancing.look()
        assert gate.history.growth is not None
        assert gate.history.growth.horizon == 25
