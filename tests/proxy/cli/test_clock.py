"""`tacit ledger set-clock`, and what a server says whose clock is not believed."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from accountant.auditor.verify import verify
from accountant.ledger.entries import Entry
from accountant.ledger.opening import open_ledger
from cube.refusals import ClockDoubtful, ConfigurationInvalid
from proxy.bootstrap import build
from proxy.config.settings import load
from tests.support.commands import Run

CONFIGURATION = """\
[ledger]
path = "people.ledger"
clock_step_days_max = 30
[tables.people]
source = "people.csv"
budget = "1.0"
n_records_max = 1000
half_width = 20
[tables.people.columns.age]
kind = "integer"
low = 0
high = 99
"""
LONG_AGO = "2020-01-01T00:00:00.000+00:00"
TO_COME = "2099-01-01T00:00:00.000+00:00"


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "people.csv").write_text("age\n40\n")
    (tmp_path / "tacit.toml").write_text(CONFIGURATION)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "tacit.toml"


def serve_once(configuration: Path) -> None:
    build(load(configuration)).close()


@pytest.fixture
def stamped(configuration: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Begins the ledger by a clock that says something."""

    def begin(at: str) -> None:
        with monkeypatch.context() as clock:
            clock.setattr("accountant.ledger.ledger.utc_now", lambda: at)
            serve_once(configuration)

    return begin


def last_of(configuration: Path) -> Entry:
    with open_ledger(configuration.with_name("people.ledger")) as ledger:
        assert verify(ledger.entries()).problem is None
        *_, last = ledger.entries()
    return last


def test_a_server_on_a_ledger_that_was_idle_for_long_waits_for_its_owner(
    configuration: Path, stamped: Callable[[str], None], run: Run
) -> None:
    stamped(LONG_AGO)
    with pytest.raises(ClockDoubtful, match="more than 30 days after") as refused:
        serve_once(configuration)
    assert "tacit ledger set-clock" in refused.value.explain()
    ended = run("ledger", "set-clock", "--yes", "--by", "ann")
    assert (ended.code, ended.err) == (0, "")
    assert f"Last entry:   {LONG_AGO}" in ended.out
    last = last_of(configuration)
    assert (last.kind, json.loads(last.body)) == ("clock_corrected", {"by": "ann", "was": LONG_AGO})
    serve_once(configuration)


def test_what_was_stamped_with_a_time_to_come_is_mended(
    configuration: Path,
    stamped: Callable[[str], None],
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stamped(TO_COME)
    serve_once(configuration)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    ended = run("ledger", "set-clock")
    assert ended.code == 1
    assert "The ledger was not changed." in ended.out
    assert last_of(configuration).kind != "clock_corrected"
    assert run("ledger", "set-clock", "--yes").code == 0
    last = last_of(configuration)
    assert (last.kind, last.at < TO_COME) == ("clock_corrected", True)


@pytest.mark.parametrize("value", ["0", "-1", "40.5", '"40"', "true", "40000"])
def test_the_days_are_a_whole_number(configuration: Path, value: str) -> None:
    configuration.write_text(CONFIGURATION.replace("max = 30", f"max = {value}"))
    with pytest.raises(ConfigurationInvalid, match=r"ledger\.clock_step_days_max"):
        load(configuration)


def test_the_help_has_an_example(run: Run) -> None:
    assert "Example: tacit ledger set-clock" in run("ledger", "set-clock", "--help").out
