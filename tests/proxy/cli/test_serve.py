"""`tacit serve` as a process of its own: start, answer, stop by signal, remember.

Tokens and limits are set by other processes beside it, as an owner does.
"""

import http.client
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from accountant.ledger.opening import open_ledger
from proxy.cli.shared import client as cli_client
from proxy.cli.shared.client import ServerAddress
from proxy.cli.shared.failures import Declined
from proxy.protocol import tacit_pb2
from tests.support.forked import Forked

pytestmark = pytest.mark.processes

COUNT = "SELECT COUNT(*) FROM people WHERE age >= 40"
CONFIGURATION = """\
[server]
listen = "127.0.0.1:0"
[ledger]
path = "people.ledger"
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
WAIT_SECONDS = 60.0
SUPPORT = Path(__file__).parents[2] / "support"


class Served(NamedTuple):
    process: Forked | subprocess.Popen[str]
    address: str
    greeting: str


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from proxy.cli.app import main; main()", *arguments]


def tacit(*arguments: str, token: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "TACIT_TOKEN"}
    if token is not None:
        environment["TACIT_TOKEN"] = token
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        with Forked(*arguments, stderr=errors.fileno(), environment=environment) as process:
            out = process.stdout.read()
            code = process.wait(WAIT_SECONDS)
        errors.seek(0)
        return subprocess.CompletedProcess(arguments, code, out, errors.read())


def issued(configuration: Path, *options: str) -> tuple[str, str]:
    """A token that opens the table, and the credential's id."""
    ended = tacit("token", "issue", "--config", str(configuration), "--table", "people", *options)
    assert ended.returncode == 0, ended.stderr
    found = re.search("Credential ([0-9a-f]+) ", ended.stderr)
    assert found is not None
    return ended.stdout.strip(), found[1]


def outcome(address: str, token: str | None) -> str:
    """How asking for the count to within 50 ends: "ok", or the code of the refusal."""
    target = tacit_pb2.Target(half_width=50.0)
    try:
        cli_client.query(ServerAddress(address=address, token=token), COUNT, target)
    except Declined as declined:
        return declined.code
    return "ok"


def becomes(expected: str, address: str, token: str) -> bool:
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        if outcome(address, token) == expected:
            return True
        time.sleep(0.1)
    return False


def started(configuration: Path) -> subprocess.Popen[str]:
    """A server as a person starts it, from nothing."""
    return subprocess.Popen(  # noqa: S603 - our own command
        command("serve", str(configuration)),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


@contextmanager
def serving(configuration: Path, *, afresh: bool = False) -> Iterator[Served]:
    with started(configuration) if afresh else Forked("serve", str(configuration)) as process:
        try:
            if process.stdout is None:
                raise RuntimeError("the process was started without a pipe")
            lines = []
            for line in process.stdout:
                lines.append(line)
                if "Ctrl-C" in line:
                    break
            yield Served(process, lines[0].split()[-1], "".join(lines))
        finally:
            process.kill()


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    rows = "".join(f"{age}\n" for age in range(100))
    (tmp_path / "people.csv").write_text("age\n" + rows)
    path = tmp_path / "tacit.toml"
    path.write_text(CONFIGURATION)
    return path


def test_a_server_answers_stops_when_told_and_remembers(configuration: Path) -> None:
    ledger = configuration.with_name("people.ledger")
    token, _ = issued(configuration, "--analyst", "ann")
    with serving(configuration, afresh=True) as served:
        assert "people: epsilon 1 of 1 left" in served.greeting
        assert f"grpc://{served.address}" in served.greeting
        assert "Clients need a token" in served.greeting
        ask = ("query", COUNT, "--server", served.address, "--format", "json")
        first = json.loads(tacit(*ask, token=token).stdout)
        assert outcome(served.address, None) == "not_authenticated"
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(WAIT_SECONDS) == 0
    assert first["epsilon_spent"] > 0
    with serving(configuration) as served:
        assert f"people: epsilon {first['epsilon_left']:.6g} of 1 left" in served.greeting
        ask = ("query", COUNT, "--server", served.address, "--format", "json")
        again = json.loads(tacit(*ask, token=token).stdout)
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(WAIT_SECONDS) == 0
    assert (again["epsilon_spent"], again["rows"]) == (0, first["rows"])
    audited = tacit("audit", "verify", str(ledger))
    assert audited.returncode == 0
    assert "people" in audited.stdout


def test_credentials_and_limits_change_beside_a_server_that_runs(configuration: Path) -> None:
    config = ("--config", str(configuration))
    limit = ("limit", "set", *config, "people", "analyst:ann")
    with serving(configuration) as served:
        token, credential = issued(configuration, "--analyst", "ann")
        assert tacit(*limit, "--epsilon", "0.001").returncode == 0
        assert becomes("limit_reached", served.address, token)
        shown = tacit("budget", "--server", served.address, token=token).stdout
        assert re.search(r"people .* analyst:ann .* never .* 0\.001 .* 0 .* 0\.001 ", shown)
        assert tacit(*limit, "--clear").returncode == 0
        assert becomes("ok", served.address, token)
        assert tacit("token", "revoke", *config, credential).returncode == 0
        assert becomes("not_authenticated", served.address, token)
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(WAIT_SECONDS) == 0
    # Nothing of what either process wrote is lost, though they took turns.
    with open_ledger(configuration.with_name("people.ledger")) as ledger:
        kinds = [entry.kind for entry in ledger.entries()]
        assert credential in ledger.access.revoked
    assert kinds.count("limit_set") == 2
    assert kinds.count("charge") == kinds.count("measurement") == 1


def test_the_commands_of_the_greeting_work_as_they_are_printed(
    configuration: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = (configuration.with_name(f"server.{end}") for end in ("pem", "key"))
    own = SUPPORT / "loopback_certificate.pem"  # it is its own authority
    certificate.write_bytes(own.read_bytes())
    key.write_bytes((SUPPORT / "loopback_key.pem").read_bytes())
    monkeypatch.chdir(configuration.parent)
    text = configuration.read_text()
    tls = '[server]\ntls_certificate = "server.pem"\ntls_key = "server.key"'
    for written in (text, text.replace("[server]", tls)):
        configuration.write_text(written)
        with serving(configuration) as served:
            lines = dict(
                line.split(": ", 1) for line in served.greeting.splitlines() if ": " in line
            )
            issued_at, shell = lines["A first token"], lines["Shell"]
            words = shlex.split(issued_at.removeprefix("(umask 077; tacit ").partition(" > ")[0])
            (configuration.parent / "me.token").write_text(tacit(*words).stdout)
            shown = tacit(*shlex.split(shell.removeprefix("tacit ")))
            assert (shown.returncode, "people" in shown.stdout) == (0, True), shown.stderr


def test_a_server_that_lets_anybody_in_says_so(configuration: Path) -> None:
    text = configuration.read_text()
    configuration.write_text(text.replace("[server]", "[server]\nallow_anonymous = true"))
    with serving(configuration) as served:
        assert "ANYBODY on this machine may query" in served.greeting
        assert outcome(served.address, None) == "ok"


def test_data_that_changed_since_the_ledger_began_is_refused(configuration: Path) -> None:
    with serving(configuration) as served:
        served.process.send_signal(signal.SIGTERM)
        served.process.wait(WAIT_SECONDS)
    with configuration.with_name("people.csv").open("a") as file:
        file.write("50\n")
    refused = tacit("serve", str(configuration))
    assert refused.returncode == 1
    assert refused.stderr.startswith("error [data_changed]: ")
    assert refused.stdout == ""


@pytest.mark.parametrize("n_workers", [1, 2])
def test_respondents_in_browsers_are_served_where_the_configuration_says(
    configuration: Path, n_workers: int
) -> None:
    more = f'respondents_listen = "127.0.0.1:0"\nworkers = {n_workers}\n[ledger]'
    configuration.write_text(CONFIGURATION.replace("[ledger]", more))
    with serving(configuration) as served:
        found = re.search(r"Respondents: http://(\S+)/collections/", served.greeting)
        assert found is not None
        with closing(http.client.HTTPConnection(found[1], timeout=WAIT_SECONDS)) as connection:
            headers = {"Authorization": f"Bearer {'0' * 64}"}
            connection.request("GET", "/collections/survey/assignment", headers=headers)
            reply = connection.getresponse()
            assert (reply.status, json.loads(reply.read())["code"]) == (404, "unknown_name")
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(WAIT_SECONDS) == 0


def test_every_problem_of_a_configuration_reaches_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "tacit.toml"
    path.write_text(CONFIGURATION.replace("budget", "bugdet").replace("high = 99", "high = -9"))
    refused = tacit("serve", str(path))
    assert refused.returncode == 1
    for key in ("bugdet", "budget", "source", "columns.age"):
        assert f"  tables.people.{key}: " in refused.stderr
    assert list(tmp_path.iterdir()) == [path]
