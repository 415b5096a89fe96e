"""A table that grows along a timestamp: by the day, by the hour, and by the clock of its zone."""

import csv
import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from accountant.auditor.verify import verify
from cube.refusals import ConfigurationInvalid
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, QueryRequest
from proxy.bootstrap import Service, build
from proxy.cli import app as cli
from proxy.config.settings import load

FIRST = dt.datetime(2026, 3, 27, tzinfo=dt.UTC)
N_HOURS = 24 * 8
CONFIG = """
[ledger]
path = "a.ledger"
[tables.visits]
source = "visits.csv"
grows = {{axis = "at", {closed}}}
budget = "1000"
n_records_max = 10000
half_width = 2
[tables.visits.columns.at]
kind = "timestamp"
low = 2026-03-27
high = 2026-04-30
step = "hour"
time_zone = "Europe/Oslo"
"""
# A whole number is told from its neighbours, but for one time in ten million.
PRECISE = RequestedTarget(half_width=0.49, confidence=0.9999999)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two visits an hour, as moments of UTC."""
    moments = [FIRST + dt.timedelta(minutes=30 * place + 7) for place in range(2 * N_HOURS)]
    with (tmp_path / "visits.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("at",), *((moment.isoformat(),) for moment in moments)])
    return tmp_path


def n_visits(until: str) -> int:
    """How many visits there are before a moment of Oslo, which was an hour, then two, ahead."""
    end = dt.datetime.fromisoformat(until).astimezone(dt.UTC)
    return 2 * int((end - FIRST) / dt.timedelta(hours=1))


@contextmanager
def served(folder: Path, closed: str) -> Iterator[Service]:
    (folder / "tacit.toml").write_text(CONFIG.format(closed=closed))
    service = build(load(folder / "tacit.toml"))
    try:
        yield service
    finally:
        service.close()


def count(service: Service) -> tuple[int, str]:
    """How many visits are answered, and the note that says up to when."""
    request = QueryRequest(sql="SELECT COUNT(*) FROM visits", caller=LOCAL, target=PRECISE)
    found = service.engine.answer(request)
    assert found.receipt is not None
    (note,) = found.receipt.notes
    return round(found.data.column(0)[0].as_py()), note


def tacit(command: str, option: str, value: str, folder: Path) -> int:
    """Run a command of `tacit table`; its exit code."""
    config = ("--config", str(folder / "tacit.toml"))
    with pytest.raises(SystemExit) as ended:
        cli.main(("table", command, "visits", option, value, *config))
    return int(ended.value.code or 0)


def advance(to: str, folder: Path) -> None:
    assert tacit("advance", "--to", to, folder) == 0


def test_a_horizon_is_a_day_or_an_hour(folder: Path) -> None:
    """Clocks were put on in the night of the 29th, so that this day has 23 hours."""
    closed = "closed_through = 2026-03-29"
    with served(folder, closed) as service:
        assert count(service) == (
            n_visits("2026-03-30T00:00+02:00"),
            "visits has rows through at 2026-03-29 23:00:00.",
        )
    advance("2026-03-30T05:59", folder)
    with served(folder, closed) as service:
        assert count(service)[0] == n_visits("2026-03-30T06:00+02:00")
    advance("2026-04-01", folder)  # a month of its own
    with served(folder, closed) as service:
        assert count(service) == (
            n_visits("2026-04-02T00:00+02:00"),
            "visits has rows through at 2026-04-01 23:00:00.",
        )
        assert verify(service.ledger.entries()).problem is None


def test_the_changes_of_a_day_are_those_of_all_its_hours(folder: Path) -> None:
    """The 30th was closed in two parts; the row that is late is in the first of them."""
    closed = "closed_through = 2026-03-29"
    with served(folder, closed):
        pass
    advance("2026-03-30T05:00", folder)
    advance("2026-03-31", folder)
    with (folder / "visits.csv").open("a", newline="") as file:
        csv.writer(file).writerow(["2026-03-30T01:10+02:00"])
    assert tacit("accept-changes", "--period", "2026-03-31", folder) == 1
    assert tacit("accept-changes", "--period", "2026-03-30", folder) == 0
    with served(folder, closed) as service:
        n_before = n_visits("2026-04-01T00:00+02:00")
        assert count(service) == (n_before + 1, "visits has rows through at 2026-03-31 23:00:00.")
        assert verify(service.ledger.entries()).problem is None


@pytest.mark.parametrize(
    ("now", "last"),
    [
        # Two hours after it ended, on the clock of Oslo.
        ("2026-03-28T11:00:00+01:00", "2026-03-28 08:00:00"),
        ("2026-03-28T10:59:59+01:00", "2026-03-28 07:00:00"),
        (
            "2026-03-29T01:30:00+00:00",
            "2026-03-28 23:00:00",
        ),  # half past 3 there, as of 1:30 before
        ("2030-01-01T00:00:00+00:00", "2026-04-30 23:00:00"),
    ],
)
def test_an_hour_is_closed_so_long_after_it_ended(folder: Path, now: str, last: str) -> None:
    (folder / "tacit.toml").write_text(CONFIG.format(closed='closed_after = "2 hours"'))
    (table,) = load(folder / "tacit.toml").tables
    assert table.closing is not None
    horizon = table.closing.horizon(table.schema, dt.datetime.fromisoformat(now))
    assert str(table.schema.by_name["at"].regular[horizon - 1]) == last


@pytest.mark.parametrize(
    ("closed", "says"),
    [
        ("closed_through = 7", "a moment without an offset, not 7"),
        ("closed_through = 2026-03-29T00:00:00Z", "a moment without an offset"),
        ("closed_through = 2026-03-26", "before the first level"),
    ],
)
def test_a_declaration_that_cannot_be_is_a_problem(folder: Path, closed: str, says: str) -> None:
    (folder / "tacit.toml").write_text(CONFIG.format(closed=closed))
    with pytest.raises(ConfigurationInvalid, match=says):
        load(folder / "tacit.toml")
