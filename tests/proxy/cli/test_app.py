"""The command line against a real server on loopback: what people read, and the exit codes."""

import csv
import io
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
import structlog

from cube.refusals import FreeWidth, LimitReached, TargetNotReached, TextPosition, UnknownName
from proxy.monitoring.logs import configure_logs
from proxy.wire.tls import TlsIdentity
from tests.support.commands import Run
from tests.support.engine_fake import (
    COUNT_ALL,
    COUNT_BY_SEX,
    EXPLAIN_ALL,
    NO_GROUPS,
    BrokenEngine,
    CannedEngine,
)
from tests.support.refusals import SHORTFALL
from tests.support.serving import serving

SUPPORT = Path(__file__).parents[2] / "support"
CANARY = "8675309"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[CannedEngine]:
    canned = CannedEngine()
    with serving(canned) as address:
        monkeypatch.setenv("TACIT_SERVER", address)
        yield canned


@pytest.fixture(autouse=True)
def _server_logs_elsewhere() -> Iterator[None]:
    """The server runs in this process, and its log is not what the command prints."""
    configure_logs(io.StringIO())
    yield
    structlog.reset_defaults()


def test_an_answer_shows_its_interval_and_what_it_rests_on(run: Run, engine: CannedEngine) -> None:
    first, again = run("query", COUNT_BY_SEX), run("query", COUNT_BY_SEX)
    assert (first.code, first.err) == (0, "")
    for text in ("Female", "NULL", "500.2", "[499.2, 501.2]", "0.95 interval", "measured"):
        assert text in first.out
    assert "epsilon spent 0.25; 9.75 of 10 left for people" in first.out
    assert "history" in again.out
    assert "epsilon spent 0; 9.75 of 10 left for people" in again.out
    assert engine.calls["answer"] == 2


def test_the_target_is_passed_on_as_it_was_written(run: Run, engine: CannedEngine) -> None:
    target = ("--half-width", "50", "--confidence", "0.9", "--epsilon", "0.1")
    run("query", COUNT_ALL, *target)
    run("explain", COUNT_ALL, *target)
    for request in engine.requests:
        assert (request.target.half_width, request.target.confidence) == (50, 0.9)
        assert str(request.target.epsilon_cap) == "1/10"
    assert engine.calls == {"answer": 1, "explain": 1}


def test_csv_has_the_interval_in_columns_of_its_own(run: Run, engine: CannedEngine) -> None:
    ended = run("query", COUNT_BY_SEX, "--format", "csv")
    assert list(csv.reader(io.StringIO(ended.out))) == [
        ["sex", "n", "n_low", "n_high"],
        ["Female", "500.25", "499.25", "501.25"],
        ["Male", "730.5", "729.5", "731.5"],
        ["", "3.75", "2.75", "4.75"],
    ]
    assert engine.spent > 0


def test_json_has_the_receipt(run: Run, engine: CannedEngine) -> None:
    shown = json.loads(run("query", COUNT_ALL, "--format", "json").out)
    assert shown == {
        "columns": ["n"],
        "rows": [[1234.5]],
        "table": "people",
        "epsilon_spent": 0.25,
        "epsilon_left": float(10 - engine.spent),
        "notes": [],
        "answers": [
            {
                "name": "n",
                "confidence": 0.95,
                "epsilon_spent": 0.25,
                "source": "measured",
                "low": [1233.5],
                "high": [1235.5],
            }
        ],
    }


@pytest.mark.parametrize("output", ["table", "csv", "json"])
@pytest.mark.parametrize("sql", [NO_GROUPS, EXPLAIN_ALL])
@pytest.mark.usefixtures("engine")
def test_results_without_rows_or_receipt_are_shown_too(run: Run, sql: str, output: str) -> None:
    ended = run("query", sql, "--format", output)
    assert (ended.code, ended.err) == (0, "")
    assert ("epsilon" if sql == EXPLAIN_ALL else "sex") in ended.out


def test_explaining_charges_nothing(run: Run, engine: CannedEngine) -> None:
    ended = run("explain", COUNT_ALL)
    assert "would spend epsilon 0.25; 10 of 10 left for people" in ended.out
    assert engine.spent == 0


@pytest.mark.usefixtures("engine")
def test_an_explanation_is_told_to_programs_too(run: Run) -> None:
    shown = json.loads(run("explain", COUNT_ALL, "--format", "json").out)
    assert (shown["epsilon"], shown["table"], shown["epsilon_left"]) == (0.25, "people", 10)
    lines = list(csv.reader(io.StringIO(run("explain", COUNT_ALL, "--format", "csv").out)))
    assert lines[0] == shown["columns"]
    assert len(lines) - 1 == len(shown["rows"]) == 1
    refused = run("explain", "SELECT nonsense", "--format", "json")
    assert json.loads(refused.err)["code"] == "sql_syntax"


@pytest.mark.usefixtures("engine")
def test_budgets_are_shown_for_one_table_or_all(run: Run) -> None:
    assert "ad_hoc" in run("budget").out
    one = run("budget", "people").out
    assert "people" in one
    assert "ad_hoc" not in one


@pytest.mark.usefixtures("engine")
def test_tables_shows_the_public_schema(run: Run) -> None:
    shown = run("tables").out
    for text in ("people", "sex", "category", "VARCHAR", "NULL", "17", "90", "half_width 100"):
        assert text in shown


@pytest.mark.usefixtures("engine")
def test_a_refusal_is_one_line_with_its_code(run: Run) -> None:
    ended = run("query", "SELECT nonsense")
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err == (
        "error [sql_syntax]: 'SELECT nonsense' is not on the list. Ask what is on it.\n"
    )
    assert run("budget", "nobody").err.startswith("error [unknown_name]: ")
    assert run("query", COUNT_ALL, "--half-width", "-1").err.startswith("error [invalid_target]: ")
    assert run("query", COUNT_ALL, "--epsilon", "lots").err.startswith("error [invalid_target]: ")


def test_a_refusal_is_json_where_the_answer_would_be(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed = UnknownName("There is no x.", hint="There is y.", position=TextPosition(3, 14))
    with serving(BrokenEngine(placed)) as address:
        monkeypatch.setenv("TACIT_SERVER", address)
        ended = run("query", COUNT_ALL, "--format", "json")
    assert (ended.code, ended.out) == (2, "")
    assert json.loads(ended.err) == {
        "code": "unknown_name",
        "message": "There is no x.",
        "hint": "There is y.",
        "position": {"line": 3, "column": 14},
        "shortfall": None,
    }


def test_a_target_that_was_not_reached_is_json_with_its_numbers(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    boundless = FreeWidth("b", math.inf)
    stopped = TargetNotReached(
        epsilon_spent=Fraction(1, 4),
        free=[FreeWidth("a", 12.5), boundless],
        because=LimitReached(SHORTFALL),
    )
    with serving(BrokenEngine(stopped)) as address:
        monkeypatch.setenv("TACIT_SERVER", address)
        shown = json.loads(run("query", COUNT_ALL, "--format", "json").err)
        assert run("query", COUNT_ALL, "--format", "csv").err.startswith("error [target_not_")
    assert shown["epsilon_spent"] == "0.25"
    assert shown["free_widths"] == [
        {"answer": "a", "half_width": 12.5},
        {"answer": "b", "half_width": None},
    ]
    assert shown["shortfall"] == {
        "table": "people",
        "epsilon_needed": "1.5",
        "epsilon_left": "0.0000000000009094947017729282379150390625",
        "account": "analyst:ann",
        "window": "day",
        "free": None,
        "fitting": None,
        "renews_on": "2027-01-01",
    }


@pytest.mark.usefixtures("engine")
def test_every_error_is_json_where_json_is_asked_for(run: Run, tmp_path: Path) -> None:
    nowhere = run("query", COUNT_ALL, "--format", "json", "--server", "127.0.0.1:1")
    assert (nowhere.code, json.loads(nowhere.err)["code"]) == (3, "server_unreachable")
    token = ("--token-file", str(tmp_path / "absent"))
    unread = run("query", COUNT_ALL, "--format", "json", *token)
    assert (unread.code, json.loads(unread.err)["code"]) == (1, "configuration_invalid")
    hostile = run("query", "SELECT \x1b[31mä", "--format", "json")
    assert hostile.err.isascii()
    assert hostile.err.strip().isprintable()


def test_a_broken_server_gives_an_incident_and_no_reason(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(BrokenEngine(ValueError(CANARY))) as address:
        monkeypatch.setenv("TACIT_SERVER", address)
        ended = run("query", COUNT_ALL)
    assert ended.code == 2
    assert ended.err.startswith("error [internal_error]: ")
    assert "incident" in ended.err
    assert CANARY not in ended.err


def test_no_server_says_how_to_start_one(run: Run) -> None:
    ended = run("query", COUNT_ALL, "--server", "127.0.0.1:1")
    assert ended.code == 3
    assert ended.err.startswith(
        "error [server_unreachable]: No Tacit server answers at 127.0.0.1:1."
    )
    assert "tacit serve" in ended.err


def test_a_server_with_tls_is_reached_with_its_authority(run: Run) -> None:
    certificate, key = SUPPORT / "loopback_certificate.pem", SUPPORT / "loopback_key.pem"
    with serving(CannedEngine(), TlsIdentity.load(certificate, key)) as address:
        port = address.rpartition(":")[2]
        server = ("--server", f"localhost:{port}")
        assert run("budget", *server, "--tls-ca", str(certificate)).code == 0
        assert run("budget", *server).code == 3
        assert run("budget", *server, "--tls-ca", "absent.pem").code == 2


def test_text_that_a_terminal_would_obey_is_shown_instead(run: Run, engine: CannedEngine) -> None:
    ended = run("query", "SELECT \x1b[31m'[bold]'")
    assert "\x1b" not in ended.err
    assert "[bold]" in ended.err
    assert engine.spent == 0


@pytest.mark.parametrize(
    "command", ["serve", "query", "explain", "budget", "tables", "init", "audit verify"]
)
def test_the_help_of_every_command_has_an_example(run: Run, command: str) -> None:
    ended = run(*command.split(), "--help")
    assert ended.code == 0
    assert f"Example: tacit {command}" in ended.out


def test_the_version_is_shown(run: Run) -> None:
    assert run("--version").out.startswith("tacit 0.")


def test_wrong_arguments_are_explained(run: Run) -> None:
    assert run("query").code == 2
    assert run("query", "x", "--format", "xml").code == 2
    assert run("nonsense").code == 2


def test_what_cannot_start_says_why(run: Run, tmp_path: Path) -> None:
    ended = run("serve", str(tmp_path / "absent.toml"))
    assert ended.code == 1
    assert ended.err.startswith("error [configuration_invalid]: There is no file")
    ended = run("audit", "verify", str(tmp_path / "absent.ledger"))
    assert ended.code == 1
    assert ended.err.startswith("error [ledger_corrupt]: ")


def test_an_unexpected_error_shows_its_type_alone(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> None:
        raise ValueError(CANARY)

    monkeypatch.setattr("proxy.cli.shared.client.list_tables", fail)
    ended = run("tables")
    assert ended.code == 1
    assert ended.err.startswith("error [internal_error]: ")
    assert CANARY not in ended.err + ended.out
