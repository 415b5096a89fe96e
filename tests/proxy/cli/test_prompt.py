"""The prompt of `tacit query`: what lines do, what Tab offers, and a sitting at a real terminal."""

import io
import os
import pty
import re
import select
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import structlog
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from proxy.cli.prompt import Names, PromptCompleter, Sitting, run_prompt
from proxy.cli.shared.client import ServerAddress, kept_open
from proxy.cli.shared.failures import Unreachable
from proxy.cli.shared.options import OutputFormat
from proxy.engine.engine import Engine
from proxy.monitoring.logs import configure_logs
from tests.support.commands import Run
from tests.support.serving import serving
from tests.support.synthetic import CITIES, spent, synthetic_engine

ROOT = Path(__file__).resolve().parents[3]
SECONDS_MAX = 60.0
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
BY_CITY = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"


@pytest.fixture(autouse=True)
def _logs_and_history_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.delenv("TACIT_TOKEN", raising=False)
    configure_logs(io.StringIO())
    yield
    structlog.reset_defaults()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with synthetic_engine(tmp_path) as engine:
        yield engine


@pytest.fixture
def server(engine: Engine) -> Iterator[ServerAddress]:
    with serving(engine, synthetic=engine.synthetic, public=(CITIES,)) as address:
        yield ServerAddress(address=address)


@pytest.fixture
def sitting(server: ServerAddress) -> Iterator[Sitting]:
    with kept_open(server) as opened:
        yield Sitting(opened, {"half_width": "100"}, OutputFormat.TABLE)


class Lines:
    """Says lines to a prompt, and what it printed since."""

    def __init__(self, sitting: Sitting, capsys: pytest.CaptureFixture[str]) -> None:
        self._prompted = sitting
        self._capsys = capsys

    def __call__(self, *lines: str) -> str:
        for line in lines:
            self._prompted.run(line)
        return self._capsys.readouterr().out


@pytest.fixture
def say(sitting: Sitting, capsys: pytest.CaptureFixture[str]) -> Lines:
    return Lines(sitting, capsys)


def test_a_statement_is_answered_as_the_command_answers(say: Lines, engine: Engine) -> None:
    shown = say(f"{BY_CITY};")
    for text in ("Oslo", "NULL", "0.95 interval", "measured", "left for people"):
        assert text in shown
    assert spent(engine) > 0
    assert say("", ";", "  ") == ""


def test_tables_and_columns_are_described(say: Lines, engine: Engine) -> None:
    tables = say("\\d")
    for text in ("people", "staff", "cities", "budgets"):
        assert text in tables
    assert "0 .. 99" in say("\\d people")
    assert "country" in say("\\d cities;")
    assert spent(engine) == 0


def test_the_budget_and_a_price_are_shown_for_nothing(say: Lines, engine: Engine) -> None:
    assert "people" in say("\\budget")
    assert "staff" not in say("\\budget people")
    assert "would spend epsilon" in say(f"\\explain {BY_CITY};")
    assert spent(engine) == 0


def test_accuracy_is_set_shown_and_sent(say: Lines) -> None:
    wide = say("\\set", "\\explain SELECT COUNT(*) FROM people")
    assert "half_width = 100" in wide
    narrow = say("\\set half_width = 10", "\\explain SELECT COUNT(*) FROM people")
    prices = [float(text) for text in re.findall(r"would spend epsilon ([\d.e-]+)", wide + narrow)]
    assert prices[1] == pytest.approx(10 * prices[0])
    assert say("\\set relative 0.1", "\\set") == "relative = 0.1\n"
    assert say("\\unset relative", "\\set") == ""


def test_what_is_set_in_sql_is_the_sessions(say: Lines) -> None:
    assert "12" in say("SET tacit.half_width = 12;", "SHOW tacit.half_width;")


def test_answers_come_in_other_forms_too(say: Lines) -> None:
    assert say("\\format csv", "SELECT city FROM cities ORDER BY city;") == "city\nOslo\nRome\n"
    assert say("\\format json", "SELECT 1 AS a;").startswith('{"columns": ["a"]')
    assert re.search(r"^\d+ ms$", say("\\timing", "SELECT 1;"), re.MULTILINE)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("\\nonsense", "no command"),
        ("\\set nonsense 1", "no setting"),
        ("\\set half_width x", "number"),
        ("\\unset nonsense", "no setting"),
        ("\\format xml", "no format"),
        ("\\explain", "nothing to explain"),
        ("SELECT nonsense FROM people;", "no column"),
        ("\\d nobody", "nobody"),
    ],
)
def test_what_fails_says_why(say: Lines, line: str, why: str) -> None:
    with pytest.raises(Exception, match=why):
        say(line)


@pytest.mark.parametrize("line", ["\\q", "quit", "EXIT;"])
def test_it_can_be_left(sitting: Sitting, line: str) -> None:
    sitting.run(line)
    assert sitting.is_over


@pytest.fixture
def completer(sitting: Sitting) -> PromptCompleter:
    found = PromptCompleter({name: one.words for name, one in sitting.commands.items()})
    found.names = sitting.names()
    return found


@pytest.mark.parametrize(
    ("before", "wanted"),
    [
        ("SELECT * FROM peo", {"people"}),
        ("SELECT vis", {"visits"}),
        ("sel", {"SELECT"}),
        ("SELECT coun", {"COUNT(*)", "COUNT", "country"}),
        ("SELECT * FROM people WHERE coun", {"COUNT(*)", "COUNT"}),
        ("SELECT people.v", {"people.visits"}),
        ("SELECT COUNT(*) FROM people AS p WHERE p.ci", {"p.city"}),
        ("SELECT * FROM data_privacy.bud", {"data_privacy.budgets"}),
        ("\\bu", {"\\budget"}),
        ("\\d staf", {"staff"}),
        ("\\set half", {"half_width"}),
        ("\\format c", {"csv"}),
        ("\\set half_width 5", set()),
        ("SELECT zzz", set()),
    ],
)
def test_tab_offers_what_fits(completer: PromptCompleter, before: str, wanted: set[str]) -> None:
    offered = completer.get_completions(Document(before), CompleteEvent(completion_requested=True))
    assert {one.text for one in offered} == wanted


def test_without_names_it_still_completes_words() -> None:
    completer = PromptCompleter({})
    offered = completer.get_completions(Document("WHER"), CompleteEvent())
    assert [one.text for one in offered] == ["WHERE"]
    assert Names().named_in("people") == []


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        yield keys


def test_errors_do_not_end_it_and_lines_may_be_several(
    keys: PipeInput, server: ServerAddress, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    keys.send_text("SELECT nonsense\rFROM people;\r")
    keys.send_text("SELECT city\rFROM cities;\r")
    keys.send_text("SELECT gi\x03")  # Ctrl-C gives the line up
    keys.send_text("\x04")  # Ctrl-D
    run_prompt(server, {}, OutputFormat.CSV)
    printed = capsys.readouterr()
    assert "error [unknown_name]: people has no column nonsense (line 1, column 8)" in printed.err
    assert printed.err.startswith("SELECT nonsense\n       ^\nerror")
    assert printed.out.endswith("city\nOslo\nRome\n")
    history = tmp_path / "state" / "tacit" / "history"
    assert "+FROM cities;" in history.read_text()
    assert stat.S_IMODE(history.stat().st_mode) == 0o600


def test_tab_completes_a_new_synthetic_table(
    keys: PipeInput, server: ServerAddress, capsys: pytest.CaptureFixture[str]
) -> None:
    keys.send_text("CREATE SYNTHETIC TABLE rosebud FROM people WITH (epsilon => 1, rows => 5);\r")
    keys.send_text("SELECT COUNT(*) AS n FROM roseb\t;\r\\q\r")
    run_prompt(server, {}, OutputFormat.CSV)
    assert capsys.readouterr().out.endswith("n\n5\n")


def test_a_history_that_cannot_be_kept_stops_nobody(
    keys: PipeInput, server: ServerAddress, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "state").write_text("in the way")
    keys.send_text("SELECT 1 AS a;\rquit\r")
    run_prompt(server, {}, OutputFormat.CSV)
    assert capsys.readouterr().out.endswith("a\n1\n")


def test_without_a_server_there_is_no_prompt() -> None:
    with pytest.raises(Unreachable):
        run_prompt(ServerAddress(address="127.0.0.1:1"), {}, OutputFormat.TABLE)


def test_without_a_terminal_sql_is_needed(run: Run) -> None:
    ended = run("query")
    assert ended.code == 2
    assert "Missing argument 'SQL'" in ended.err


def test_at_a_terminal_the_command_is_a_prompt(server: ServerAddress) -> None:
    terminal, program_side = pty.openpty()
    program = subprocess.Popen(  # noqa: S603 - the command under test
        [sys.executable, "-m", "proxy", "query", "--server", server.address, "--format", "csv"],
        stdin=program_side,
        stdout=program_side,
        stderr=program_side,
        cwd=ROOT,
        env={**os.environ, "TERM": "xterm"},
        start_new_session=True,
    )
    os.close(program_side)
    try:
        until(terminal, "tacit>")
        os.write(terminal, b"SELECT countr\t FROM cities WHERE city = 'Oslo';\r")
        assert "Norway" in until(terminal, "Norway")
        os.write(terminal, b"\\q\r")
        until(terminal, None)
        assert program.wait(SECONDS_MAX) == 0
    finally:
        program.kill()
        program.wait()
        os.close(terminal)


def until(terminal: int, wanted: str | None) -> str:
    """What a terminal shows until a text; until the program's end for None."""
    shown, end = "", time.monotonic() + SECONDS_MAX
    while time.monotonic() < end and (wanted is None or wanted not in shown):
        if not select.select([terminal], [], [], 1.0)[0]:
            continue
        data = b""
        with suppress(OSError):  # the program ended
            data = os.read(terminal, 65536)
        if not data:
            break
        if b"\x1b[6n" in data:  # it asks where the cursor is
            os.write(terminal, b"\x1b[1;1R")
        shown += ESCAPES.sub("", data.decode(errors="replace"))
    return shown
